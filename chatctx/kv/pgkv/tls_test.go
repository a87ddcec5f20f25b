//go:build unix

package pgkv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/internal/pgtest"
)

// certificate writes a certificate of its own authority for localhost, and its key.
func certificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return kept(t, dir, name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		kept(t, dir, name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// kept writes a file that its owner alone may read.
func kept(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const secretWord = "p ss+w0rd/%"

// secured starts a server that lets ann in over TLS with a password, and nobody else, and gives its port and the certificate of its authority.
func secured(t *testing.T) (c *pgtest.Cluster, port, authority string) {
	t.Helper()
	server(t)
	dir, err := os.MkdirTemp("", "pgkv") // the server's user cannot enter a TempDir of the test's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	authority, key := certificate(t, dir, "server")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	hba := kept(t, dir, "hba", "local all postgres trust\nhostssl all ann 127.0.0.1/32 scram-sha-256\n")
	theirs := kept(t, dir, "theirs.crt", string(read(t, authority)))
	for _, path := range []string{dir, key, hba, theirs} {
		if err := pgtest.HandOver(path); err != nil {
			t.Fatal(err)
		}
	}
	_ = listener.Close()
	c, err = pgtest.Start("ssl=on", "ssl_cert_file="+theirs, "ssl_key_file="+key, "hba_file="+hba, "listen_addresses=127.0.0.1", "port="+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	return c, port, authority
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTLSAndPasswords: the settings that libpq knows let in the right users and nobody else, and no error shows the password.
func TestTLSAndPasswords(t *testing.T) {
	c, port, authority := secured(t)
	owner := c.URL("store", "port="+port)
	if err := initialise(ctx, owner, nil); err != nil {
		t.Fatal(err)
	}
	sqlAt(t, owner, "create role ann login superuser password "+literal(secretWord))
	dir := t.TempDir()
	other, _ := certificate(t, dir, "other")
	t.Setenv("PGPASSWORD", "")
	t.Setenv("PGPASSFILE", filepath.Join(dir, "none"))
	passfile := kept(t, dir, "pass", "localhost:"+port+":postgres:ann:"+strings.ReplaceAll(secretWord, ":", `\:`)+"\n")
	services := kept(t, dir, "services", "[team]\nhost=localhost\nport="+port+"\ndbname=postgres\nuser=ann\nsslmode=verify-full\nsslrootcert="+authority+"\n")
	at := func(host, mode string) string {
		return "postgres://ann@" + host + ":" + port + "/postgres?search_path=store&sslmode=" + mode
	}
	full, inURL := at("localhost", "verify-full"), url.UserPassword("ann", secretWord).String()
	for _, test := range []struct {
		what, url, password, passfile string
		refused                       error // nil: it is let in; errAny: it is not, for whatever reason
	}{
		{"verify-full", full + "&sslrootcert=" + authority, secretWord, "", nil},
		{"verify-full with another authority", full + "&sslrootcert=" + other, secretWord, "", errAny},
		{"verify-full with the system's authorities", full, secretWord, "", errAny},
		{"verify-full by a name that is not the server's", at("127.0.0.1", "verify-full") + "&sslrootcert=" + authority, secretWord, "", errAny},
		{"verify-ca by any name", at("127.0.0.1", "verify-ca") + "&sslrootcert=" + authority, secretWord, "", nil},
		{"require", at("localhost", "require"), secretWord, "", nil},
		{"prefer", at("localhost", "prefer"), secretWord, "", nil},
		{"no TLS where the server wants it", at("localhost", "disable"), secretWord, "", fs.ErrPermission},
		{"a wrong password", at("localhost", "require"), secretWord + "x", "", fs.ErrPermission},
		{"no password", at("localhost", "require"), "", "", errAny},
		{"a password in the URL", strings.Replace(at("localhost", "require"), "ann@", inURL+"@", 1), "", "", nil},
		{"a password among the settings", at("localhost", "require") + "&password=" + url.PathEscape(secretWord[:1]) + url.PathEscape(secretWord[1:]), "", "", nil},
		{"a file of passwords", at("localhost", "require"), "", passfile, nil},
		{"a file of passwords for another host", at("127.0.0.1", "require"), "", passfile, errAny},
		{"a service", "postgres:///?search_path=store&service=team&servicefile=" + services, secretWord, "", nil},
		{"a service and a file of passwords", "postgres:///?search_path=store&service=team&servicefile=" + services, "", passfile, nil},
		{"a service that is not there", "postgres:///?search_path=store&service=others&servicefile=" + services, secretWord, "", errAny},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Setenv("PGPASSWORD", test.password)
			if test.passfile != "" {
				t.Setenv("PGPASSFILE", test.passfile)
			}
			err := openError(test.url)
			switch {
			case test.refused == nil && err != nil, test.refused != nil && err == nil, test.refused == fs.ErrPermission && !errors.Is(err, test.refused):
				t.Errorf("%v, want %v", err, test.refused)
			case err != nil && (strings.Contains(err.Error(), "w0rd") || strings.Contains(fmt.Sprintf("%+v", err), "w0rd")):
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// errAny: some error.
var errAny = errors.New("some error")
