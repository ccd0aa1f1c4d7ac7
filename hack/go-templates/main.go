// Runs templates with Go's own text/template. The evaluator of crates/template is compared with the results.
//
//	go run .          writes the cases with Go's results to standard output (`make go-cases`)
//	go run . bench    times the templates of bench.go (`make bench-core`)
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"text/template"
)

//go:embed data.json
var dataText []byte

// A list of templates about one topic.
type topic struct {
	name      string
	templates []string
}

// The result of one template in Go: text, or an error. In the list of differences, also the result of Orkestra, unless it refuses the
// template, and the reason.
type result struct {
	Topic    string  `json:"topic,omitempty"`
	Template string  `json:"template"`
	Text     *string `json:"text,omitempty"`
	Error    bool    `json:"error,omitempty"`
	Ours     *string `json:"ours,omitempty"`
	Why      string  `json:"why,omitempty"`
}

func main() {
	log.SetFlags(0)
	data, err := numbers(dataText)
	if err != nil {
		log.Fatal(err)
	}
	switch {
	case len(os.Args) == 1:
		if err := write(os.Stdout, data); err != nil {
			log.Fatal(err)
		}
	case len(os.Args) == 2 && os.Args[1] == "bench":
		bench(data)
	default:
		log.Fatal("usage: go run . [bench]")
	}
}

// Writes the cases, one per line, so that a diff shows only the changed cases.
func write(to io.Writer, data any) error {
	var compact bytes.Buffer
	if err := json.Compact(&compact, dataText); err != nil {
		return err
	}
	cases, err := lines(caseResults(data))
	if err != nil {
		return err
	}
	differences, err := lines(differenceResults(data))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "{\n\"data\": %s,\n\"cases\": [\n%s\n],\n\"differences\": [\n%s\n]\n}\n", compact.String(), cases, differences)
	return err
}

func lines(results []result) (string, error) {
	var all []string
	for _, result := range results {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(result); err != nil {
			return "", err
		}
		all = append(all, strings.TrimSpace(line.String()))
	}
	return strings.Join(all, ",\n"), nil
}

func caseResults(data any) []result {
	var results []result
	seen := map[string]bool{}
	for _, topic := range topics() {
		for _, source := range topic.templates {
			if seen[source] {
				log.Fatalf("%s occurs twice", source)
			}
			seen[source] = true
			given := run(source, data)
			if given.Error != (topic.name == "refused") {
				log.Fatalf("%s is in the wrong topic: refused by Go: %t", source, given.Error)
			}
			given.Topic = topic.name
			results = append(results, given)
		}
	}
	return results
}

func differenceResults(data any) []result {
	var results []result
	for _, difference := range differences {
		given := run(difference.template, data)
		given.Why = difference.why
		same := given.Error == (difference.ours == refused)
		if same && (given.Error || *given.Text == difference.ours) {
			log.Fatalf("%s is not a difference: Go returns the same", difference.template)
		}
		if difference.ours != refused {
			given.Ours = &difference.ours
		}
		results = append(results, given)
	}
	return results
}

// Returns the result of a template in Go, with missing keys as zero values and without the text that Go prints for them.
func run(source string, data any) result {
	var out strings.Builder
	parsed, err := template.New("").Option("missingkey=zero").Parse(source)
	if err == nil {
		err = parsed.Execute(&out, data)
	}
	if err != nil {
		return result{Template: source, Error: true}
	}
	text := strings.ReplaceAll(out.String(), "<no value>", "")
	return result{Template: source, Text: &text}
}

// Decodes JSON like the objects of a cluster: whole numbers as int64 (uint64 if int64 is too small), others as float64.
func numbers(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	return settle(data)
}

func settle(node any) (any, error) {
	switch node := node.(type) {
	case json.Number:
		if n, err := node.Int64(); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(node.String(), 10, 64); err == nil {
			return n, nil
		}
		return node.Float64()
	case []any:
		for at := range node {
			item, err := settle(node[at])
			if err != nil {
				return nil, err
			}
			node[at] = item
		}
	case map[string]any:
		for key := range node {
			item, err := settle(node[key])
			if err != nil {
				return nil, err
			}
			node[key] = item
		}
	}
	return node, nil
}
