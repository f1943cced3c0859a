package main

type doctor struct{}

func (doctor) Run() error { return nil }
