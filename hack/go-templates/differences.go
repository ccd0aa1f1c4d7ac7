package main

// Stands for a template that we refuse.
const refused = "\x00"

// Where we differ from Go on purpose.
var differences = []struct{ template, ours, why string }{}
