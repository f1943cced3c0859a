package app

import (
	"tocsin/notify/preset"
)

// Receiver is a service that webhooks can be for.
type Receiver struct {
	ID, Name string
	// Sends lists what it is notified of.
	Sends string
	// Own says that it is an operator's.
	Own bool
}

// Receivers returns those of the program and those that files, or folders of files, add.
func Receivers(paths []string) ([]Receiver, error) {
	set, err := preset.Load(paths...)
	if err != nil {
		return nil, err
	}
	var list []Receiver
	for _, p := range set.All() {
		list = append(list, Receiver{p.ID, p.Name, p.Describe(), p.Own})
	}
	return list, nil
}

// ReceiverReport is what came of trying the file of a receiver with samples.
type ReceiverReport struct {
	Receiver

	// Problems keep it from being used; Cuts tell what would be shortened of long texts.
	Problems, Cuts []string
}

// CheckReceiver reads the file of a receiver and renders all its events with samples of the worst
// texts that exchanges hold. An error names file, line and remedy.
func CheckReceiver(path string) (ReceiverReport, error) {
	p, err := preset.ReadFile(path)
	if err != nil {
		return ReceiverReport{}, err
	}
	report := p.Check()
	return ReceiverReport{Receiver{p.ID, p.Name, p.Describe(), true}, report.Problems, report.Cuts}, nil
}

// ReceiverSchema returns the JSON Schema of the files of receivers.
func ReceiverSchema() []byte { return preset.Schema() }
