package main

import (
	"fmt"
	"net/netip"
)

// network is a range of addresses, as 10.1.0.0/16.
type network struct{ netip.Prefix }

// UnmarshalText reads a network.
func (n *network) UnmarshalText(text []byte) error {
	prefix, err := netip.ParsePrefix(string(text))
	if err == nil {
		n.Prefix = prefix
		return nil
	}
	if address, err := netip.ParseAddr(string(text)); err == nil {
		return fmt.Errorf("%s is one address; a network of it alone is %s", address, netip.PrefixFrom(address, address.BitLen()))
	}
	return fmt.Errorf("%q is no network; write it as 10.1.0.0/16", text)
}

func prefixes(networks []network) []netip.Prefix {
	var list []netip.Prefix
	for _, n := range networks {
		list = append(list, n.Prefix)
	}
	return list
}
