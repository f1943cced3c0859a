package receiver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"
)

// Listening says where a receiver listens.
type Listening struct {
	// Base is its address without TLS, Hosts those with it.
	Base  string   `json:"base"`
	Hosts []string `json:"hosts"`
	// Authority is the certificate that vouches for the hosts, as PEM.
	Authority string `json:"authority"`
}

// Serve has a handler listen on loopback: on one address without TLS, and on so many
// others with it, each of which is a host of its own. The server ends with Close.
func Serve(ctx context.Context, handler http.Handler, hosts int) (*http.Server, Listening, error) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var config net.ListenConfig
	plain, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, Listening{}, err
	}
	go func() { _ = server.Serve(plain) }()
	at := Listening{Base: "http://" + plain.Addr().String()}
	a, err := newAuthority()
	if err != nil {
		return nil, at, errors.Join(err, server.Close())
	}
	at.Authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
	for n := range hosts {
		ip := net.IPv4(127, 1, byte(n/250), byte(1+n%250))
		certificate, err := a.certify(ip)
		if err != nil {
			return nil, at, errors.Join(err, server.Close())
		}
		listener, err := config.Listen(ctx, "tcp", ip.String()+":0")
		if err != nil {
			return nil, at, errors.Join(err, server.Close())
		}
		secure := tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{certificate},
		})
		go func() { _ = server.Serve(secure) }()
		at.Hosts = append(at.Hosts, "https://"+listener.Addr().String())
	}
	return server, at, nil
}

// authority certifies hosts, all for one key.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, serial: 1}
	template := a.template()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the receivers: %w", err)
	}
	return a, nil
}

func (a *authority) template() *x509.Certificate {
	a.serial++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: "receivers of the benchmark"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour),
	}
}

func (a *authority) certify(ip net.IP) (tls.Certificate, error) {
	template := a.template()
	template.IPAddresses, template.ExtKeyUsage = []net.IP{ip}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, a.key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certify %v: %w", ip, err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: a.key}, nil
}
