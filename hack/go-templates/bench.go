package main

func bench() {}
