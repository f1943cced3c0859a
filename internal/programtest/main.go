package programtest

import (
	"flag"
	"strconv"
)

// Parallel lets so many tests of the process run at once, unless -test.parallel is given. Tests that
// mostly wait for processes, leases and ticks can be more than there are processors. TestMain calls
// it before it runs the tests.
func Parallel(tests int) {
	if !flag.Parsed() {
		flag.Parse()
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}
