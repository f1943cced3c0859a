package app

import (
	"tocsin/notify/preset"
)

// Receiver is a service that webhooks can be for.
type Receiver struct {
	ID, Name string
	// Sends lists the events that it is notified of.
	Sends string
	// Own says that an operator has added it.
	Own bool
}

// Receivers returns the receivers of the program and those in files, or folders of files.
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

// ReceiverReport is the result of trying the file of a receiver with samples.
type ReceiverReport struct {
	Receiver

	// Problems make the receiver unusable. Cuts say how long texts would be shortened.
	Problems, Cuts []string
}

// CheckReceiver reads the file of a receiver and renders all its events with the worst samples of
// exchanges. An error names file, line and remedy.
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
