package main

// All cases, by topic.
func topics() []topic {
	var all []topic
	for _, some := range [][]topic{syntax, flow, notes, printf, matrix(), refusals} {
		all = append(all, some...)
	}
	return all
}
