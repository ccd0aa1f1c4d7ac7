package main

// Marks a template that Orkestra refuses.
const refused = "\x00"

// Intended differences from Go: a template, the result of Orkestra, and the reason. docs/reference/language.md shows the list.
var differences = []struct{ template, ours, why string }{
	{`a{{ .nope.deep }}`, `a`, `a path through a missing value is empty`},
	{`a{{ .spec.image.deep }}`, `a`, `a path into a text, a number or a list is empty`},
	{`a{{ index .spec.list 99 }}`, `a`, `an index out of range is empty`},
	{`a{{ index .nope 0 }}`, `a`, `an index into a missing value is empty`},
	{`a{{ index .spec.map .nope }}`, `a`, `a missing index is empty`},
	{`{{ len .nope }}`, `0`, `the length of a missing value is 0`},
	{`{{ len 5 }}`, `0`, `the length of a number is 0`},
	{`{{ lt .nope 1 }} {{ ge .nope "a" }}`, `true false`, `in a comparison, a missing value is the zero value of the other type`},
	{`a{{ printf .nope }}`, `a`, `a missing text is empty for every function`},
	{`{{ 1e6 }} {{ .spec.tiny }} {{ printf "%v" 1e21 }}`, `1000000 0.0025 1000000000000000000000`, "numbers print exactly; `%g` and `%e` print exponents"},
	{`{{ print 1e6 0.00001 }}`, `1000000 0.00001`, "the same applies in lists and in `print`"},
	{`{{ 18446744073709551615 }}`, `18446744073709551615`, `constants may be unsigned 64-bit integers`},
	{`{{ eq 1 1.0 }} {{ lt 1 1.5 }}`, `true true`, `integers and floats compare by value`},
	{`{{ 0x1p4 }}`, refused, `hexadecimal floats are not supported`},
	{`{{ 1i }}`, refused, `imaginary numbers are not supported`},
	{`{{ "\xff" }}`, refused, `text is UTF-8`},
	{`{{ printf "%#v %+v" "a" "b" }}`, `a b`, `there is no Go syntax to print`},
	{`{{ printf "%T" (index "abc" 0) }}`, `int`, `a byte of a text is an integer like any other`},
	{`{{ range .spec.one }}{{ printf "%T" . }}{{ end }}`, `int`, "an integer that a template creates is an `int`; `int64` is the type of integers in data"},
	{`a{{ /* b */ }}c`, `ac`, `a comment may be surrounded by spaces`},
	{`{{ $x := 1 }}{{ $x=2 }}{{ $x }}`, `2`, `an assignment needs no space`},
	{`{{ slice .spec.image 0 .spec.one }}`, `n`, "`slice` accepts positions from the data"},
	{`{{ spec.image }}`, `nginx:1.25`, `a known root without its dot is read as if it had one, with a warning`},
	{`{{ define "a" }}b{{ end }}`, refused, `a template is one text`},
	{`{{ block "a" . }}b{{ end }}`, refused, `likewise`},
	{`{{ define "a" }}b{{ end }}{{ template "a" }}`, refused, `likewise; declare a function instead`},
	{`{{ js "a" }}`, refused, `Kubernetes objects contain no JavaScript`},
	{`{{ $ := 1 }}{{ $ }}`, refused, "`$` is always the root data"},
}
