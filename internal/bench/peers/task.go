package peers

import (
	"encoding/json"
	"os"
)

// writeTask writes the task of a child to a file.
func writeTask(what any) (string, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp("", "tocsin-bench-")
	if err != nil {
		return "", err
	}
	if _, err := file.Write(text); err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}

// ReadTask reads what a parent wrote for its child.
func ReadTask[T any](path string) (task T, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &task)
	}
	return task, err
}
