package main

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"
)

// network is a range of addresses, for example 10.1.0.0/16.
type network struct{ netip.Prefix }

// UnmarshalText parses a network.
func (n *network) UnmarshalText(text []byte) error {
	prefix, err := netip.ParsePrefix(string(text))
	if err == nil {
		n.Prefix = prefix
		return nil
	}
	if address, err := netip.ParseAddr(string(text)); err == nil {
		return fmt.Errorf("%s is a single address; write it as the network %s", address, netip.PrefixFrom(address, address.BitLen()))
	}
	return fmt.Errorf("%q is not a network; write it like 10.1.0.0/16", text)
}

func prefixes(networks []network) []netip.Prefix {
	var list []netip.Prefix
	for _, n := range networks {
		list = append(list, n.Prefix)
	}
	return list
}

// rootsOf returns the certificates of the system and those in a file. Without a file it returns
// nil, which means those of the system.
func rootsOf(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // those of the system
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("TOCSIN_OUTGOING_CA: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("TOCSIN_OUTGOING_CA: %s contains no PEM certificate", path)
	}
	return roots, nil
}
