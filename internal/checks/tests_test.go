package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestTestsAreReportedAsGoTestDoes(t *testing.T) {
	report := `{"ImportPath":"broken","Action":"build-output","Output":"# broken\n"}
devstack: Postgres on 127.0.0.1:1
{"Action":"run","Package":"a","Test":"TestOne"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"=== RUN   TestOne\n"}
{"Action":"output","Package":"a","Test":"TestOne","Output":"    a_test.go:1: quiet\n"}
{"Action":"pass","Package":"a","Test":"TestOne","Elapsed":1}
{"Action":"output","Package":"a","Output":"ok  \ta\t1.0s\n"}
{"Action":"pass","Package":"a","Elapsed":1}
{"Action":"output","Package":"b","Test":"TestTwo","Output":"    b_test.go:1: wrong\n"}
{"Action":"fail","Package":"b","Test":"TestTwo","Elapsed":2}
{"Action":"output","Package":"b","Test":"TestThree","Output":"panic: at last\n"}
{"Action":"output","Package":"b","Output":"FAIL\tb\t91.0s\n"}
{"Action":"fail","Package":"b","Elapsed":91}
`
	for i := range slowestShown {
		report += fmt.Sprintf(`{"Action":"pass","Package":"c","Test":"Test%d","Elapsed":%d}
{"Action":"pass","Package":"c","Test":"Test%[1]d/sub","Elapsed":%[2]d}
`, i, 10+i)
	}
	var out strings.Builder
	if err := reportTests(strings.NewReader(report), &out); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"# broken": true, "devstack: Postgres": true, "quiet": false, "ok  \ta\t1.0s": true, "b_test.go:1: wrong": true,
		"panic: at last": true, "FAIL\tb\t91.0s": true, "    19.0 s  c Test9\n    18.0 s  c Test8\n": true, "TestTwo\n": false, "sub": false,
		"b takes 91 s": true, "a takes": false,
	} {
		if got := strings.Contains(out.String(), text); got != want {
			t.Errorf("%q is there: %v, want %v:\n%s", text, got, want, out.String())
		}
	}
}
