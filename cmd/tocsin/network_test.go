package main

import "testing"

func TestNetworksAreReadOrRefusedWithTheForm(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.0.0/16": "", "fd00::/8": "",
		"10.1.2.3": "10.1.2.3 is a single address; write it as the network 10.1.2.3/32",
		"fd00::1":  "fd00::1 is a single address; write it as the network fd00::1/128",
		"intranet": `"intranet" is not a network; write it like 10.1.0.0/16`,
	} {
		var n network
		err := n.UnmarshalText([]byte(text))
		switch {
		case want == "" && (err != nil || n.String() != text):
			t.Errorf("%s: %v, %v", text, n, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
