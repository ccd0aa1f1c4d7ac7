package main

// Stands for a template that we refuse.
const refused = "\x00"

// Where we differ from Go on purpose: a template, what we give, and why. docs/language.md shows the list.
var differences = []struct{ template, ours, why string }{
	{`a{{ .nope.deep }}`, `a`, `a path through a missing value is empty`},
	{`a{{ .spec.image.deep }}`, `a`, `a path into a text, a number or a list is empty`},
	{`a{{ index .spec.list 99 }}`, `a`, `an index beyond the end gives nothing`},
	{`a{{ index .nope 0 }}`, `a`, `so does an index into what is missing`},
	{`a{{ index .spec.map .nope }}`, `a`, `and one that is missing itself`},
	{`{{ len .nope }}`, `0`, `what is missing has no length`},
	{`{{ len 5 }}`, `0`, `neither has a number`},
	{`{{ lt .nope 1 }} {{ ge .nope "a" }}`, `true false`, `in an order, a missing value is the zero of the other's type`},
	{`a{{ printf .nope }}`, `a`, `a missing text is an empty text, for every function`},
	{`{{ 1e6 }} {{ .spec.tiny }} {{ printf "%v" 1e21 }}`, `1000000 0.0025 1000000000000000000000`, "numbers print exactly; `%g` and `%e` are there for exponents"},
	{`{{ print 1e6 0.00001 }}`, `1000000 0.00001`, "so they do in lists, and in `print`"},
	{`{{ 18446744073709551615 }}`, `18446744073709551615`, `constants may have 64 bits without a sign`},
	{`{{ eq 1 1.0 }} {{ lt 1 1.5 }}`, `true true`, `integers and floats compare by value`},
	{`{{ 0x1p4 }}`, refused, `hexadecimal floats are no constants`},
	{`{{ 1i }}`, refused, `neither are imaginary numbers`},
	{`{{ "\xff" }}`, refused, `text is UTF-8`},
	{`{{ printf "%#v %+v" "a" "b" }}`, `a b`, `there is no source of a Go program to print`},
	{`{{ printf "%T" (index "abc" 0) }}`, `int`, `a byte of a text is an integer like any other`},
	{`{{ range .spec.one }}{{ printf "%T" . }}{{ end }}`, `int`, "whatever a template makes is an `int`; `int64` is what data holds"},
	{`a{{ /* b */ }}c`, `ac`, `a comment may have space around it`},
	{`{{ $x := 1 }}{{ $x=2 }}{{ $x }}`, `2`, `an assignment needs no space`},
	{`{{ slice .spec.image 0 .spec.one }}`, `n`, "`slice` takes positions from the data as well"},
	{`{{ spec.image }}`, `nginx:1.25`, `a known root without its dot is read with it, and warned of`},
	{`{{ define "a" }}b{{ end }}`, refused, `a template is one text`},
	{`{{ block "a" . }}b{{ end }}`, refused, `likewise`},
	{`{{ define "a" }}b{{ end }}{{ template "a" }}`, refused, `likewise; a note of your own does that`},
	{`{{ js "a" }}`, refused, `nothing that Kubernetes takes is JavaScript`},
	{`{{ $ := 1 }}{{ $ }}`, refused, "`$` is always the root data"},
}
