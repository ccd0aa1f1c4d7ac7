package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"testing"
	"text/template"
)

//go:embed bench.json
var benchText []byte

// Prints the nanoseconds that Go takes to execute each template that the benchmark of crates/engine measures, too.
func bench(data any) {
	var templates []struct{ Name, Template string }
	if err := json.Unmarshal(benchText, &templates); err != nil {
		log.Fatal(err)
	}
	for _, one := range templates {
		parsed := template.Must(template.New("").Option("missingkey=zero").Parse(one.Template))
		result := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				if err := parsed.Execute(io.Discard, data); err != nil {
					b.Fatal(err)
				}
			}
		})
		nanoseconds := float64(result.T.Nanoseconds()) / float64(result.N)
		fmt.Printf("%.1f\t%s\n", nanoseconds, one.Name)
	}
}
