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
	again, err := reportTests(strings.NewReader(report), &out)
	if err != nil || again != "" {
		t.Fatalf("after a panic %q are tried again, %v", again, err)
	}
	for text, want := range map[string]bool{
		"# broken": true, "devstack: Postgres": true, "quiet": false, "ok  \ta\t1.0s": true, "b_test.go:1: wrong": true,
		"panic: at last": true, "FAIL\tb\t91.0s": true, "    19.0 s  c Test9\n    18.0 s  c Test8\n": true, "TestTwo\n": false, "sub": false,
		"TOO LONG: 1 of 2 packages take more than 90 s each, 91 s together:\n    91.0 s  b\n": true, " s  a\n": false, "No package": false,
	} {
		if got := strings.Contains(out.String(), text); got != want {
			t.Errorf("%q is there: %v, want %v:\n%s", text, got, want, out.String())
		}
	}
}

// TestPackagesThatTakeTooLongAreListed orders packages around the bound.
func TestPackagesThatTakeTooLongAreListed(t *testing.T) {
	for _, c := range []struct {
		what     string
		packages []timed
		want     string
	}{
		{"none", nil, "\nNo package takes longer than 90 s.\n"},
		{"at the bound", []timed{{testID{pkg: "a"}, 90}, {testID{pkg: "b"}, 1}}, "\nNo package takes longer than 90 s.\n"},
		{
			"two of three",
			[]timed{{testID{pkg: "a"}, 323}, {testID{pkg: "b"}, 90.5}, {testID{pkg: "c"}, 2}},
			"\nTOO LONG: 2 of 3 packages take more than 90 s each, 414 s together:\n   323.0 s  a\n    90.5 s  b\n",
		},
	} {
		var out strings.Builder
		showSlow(&out, c.packages)
		if out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.what, out.String(), c.want)
		}
	}
}

func TestFewFailedTestsAreTriedAgain(t *testing.T) {
	fail := func(pkg, test, said string) string {
		lines := ""
		if said != "" {
			lines = fmt.Sprintf(`{"Action":"output","Package":%q,"Test":%q,"Output":%q}`+"\n", pkg, test, said)
		}
		return lines + fmt.Sprintf(`{"Action":"fail","Package":%q,"Test":%q}`+"\n", pkg, test)
	}
	for _, c := range []struct{ what, report, want string }{
		{"nothing failed", `{"Action":"pass","Package":"a","Test":"TestOne"}` + "\n", ""},
		{
			"two, in two packages", fail("b", "TestTwo/slow", "") + fail("b", "TestTwo", "too late") + fail("b", "", "") + fail("a", "TestOne", "") + fail("a", "", ""),
			"a ^(TestOne)$\nb ^(TestTwo)$\n",
		},
		{"two of one package", fail("a", "TestOne", "") + fail("a", "TestTwo", "") + fail("a", "", ""), "a ^(TestOne|TestTwo)$\n"},
		{"seven", fail("a", "TestOne", "") + fail("a", "TestTwo", "") + fail("a", "TestThree", "") + fail("a", "TestFour", "") +
			fail("a", "TestFive", "") + fail("a", "TestSix", "") + fail("b", "TestSeven", ""), ""},
		{"a data race", fail("a", "TestOne", "WARNING: DATA RACE\n") + fail("a", "", ""), ""},
		{"a panic", fail("a", "TestOne", "panic: nil\n") + fail("a", "", ""), ""},
		{"a package out of time", fail("a", "TestOne", "") + fail("a", "", "panic: test timed out after 20m0s\n"), "a ^(.*)$\n"},
		{"a panic before the time was over", fail("a", "", "panic: nil\npanic: test timed out after 20m0s\n"), ""},
		{"a data race of a package out of time", fail("a", "TestOne", "") + fail("a", "", "WARNING: DATA RACE\npanic: test timed out after 20m0s\n"), ""},
		{"a package that ended early", fail("a", "TestOne", "") + fail("b", "", "exit status 2\n"), ""},
		{"a build", `{"Action":"build-fail","ImportPath":"b"}` + "\n" + fail("a", "TestOne", ""), ""},
	} {
		var out strings.Builder
		if got, err := reportTests(strings.NewReader(c.report), &out); err != nil || got != c.want {
			t.Errorf("%s: %q are tried again, want %q; %v", c.what, got, c.want, err)
		}
	}
}
