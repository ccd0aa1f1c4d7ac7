// The hook `workers`: a function of its request. It is built as a command of WASI preview 1, reads the request from standard input and
// writes the answer to standard output. It has no network, no files and no clock.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// request has the fields of a request that this hook uses. `ork hook schema request` prints all of them.
type request struct {
	Object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"object"`
	Args struct {
		Replicas int `json:"replicas"`
	} `json:"args"`
}

// answer decides how many workers there are, and writes down their names.
func answer(req request) map[string]any {
	count := 2 * req.Args.Replicas
	names := make([]string, count)
	for number := range names {
		names[number] = fmt.Sprintf("worker-%d", number+1)
	}
	return map[string]any{
		"data": map[string]any{"count": count},
		"children": []any{map[string]any{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   map[string]any{"name": req.Object.Metadata.Name + "-workers"},
			"data":       map[string]any{"names": strings.Join(names, " ")},
		}},
	}
}

func main() {
	var req request
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = json.Unmarshal(text, &req)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the request cannot be read:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer(req)); err != nil {
		fmt.Fprintln(os.Stderr, "the answer cannot be written:", err)
		os.Exit(1)
	}
}
