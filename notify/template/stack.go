package template

import "strings"

// StackTop returns the line of a stack trace that is most useful to the authors of the program: the
// innermost frame that does not belong to a runtime or a framework; otherwise the innermost frame;
// otherwise the first line.
func StackTop(stack string) string {
	var first, top, opening string
	python := strings.Contains(stack, "Traceback (most recent call last)")
	for line := range strings.Lines(stack) {
		line = strings.TrimSpace(line)
		if opening == "" {
			opening = line
		}
		frame, found := strings.CutPrefix(line, "at ")
		if python {
			frame, found = line, strings.HasPrefix(line, `File "`)
		}
		if !found {
			continue
		}
		// Python prints the innermost frame last; the others print it first.
		if first == "" || python {
			first = line
		}
		if foreign(frame) {
			continue
		}
		top = line
		if !python {
			break
		}
	}
	switch {
	case top != "":
		return top
	case first != "":
		return first
	default:
		return opening
	}
}

// foreign reports whether a frame belongs to a runtime or a framework.
func foreign(frame string) bool {
	for _, mark := range []string{"node_modules/", "(node:", "site-packages/", "/lib/python", "<frozen "} {
		if strings.Contains(frame, mark) {
			return true
		}
	}
	// Java puts the module or the class loader in front, followed by a slash.
	if before, after, found := strings.Cut(frame, "/"); found && !strings.ContainsAny(before, " (:") {
		frame = after
	}
	for _, prefix := range []string{
		"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "groovy.",
		"org.apache.", "org.springframework.", "org.hibernate.", "org.postgresql.", "org.eclipse.", "org.jboss.",
		"io.netty.", "io.quarkus.", "io.vertx.", "io.micrometer.", "io.grpc.", "reactor.", "com.zaxxer.", "com.mysql.", "oracle.jdbc.",
		"com.fasterxml.", "com.google.common.", "okhttp3.", "node:", "internal/", "System.", "Microsoft.",
	} {
		if strings.HasPrefix(frame, prefix) {
			return true
		}
	}
	return false
}
