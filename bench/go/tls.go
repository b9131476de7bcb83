// The twin of the server in examples/tls.c: crypto/tls, the same answer to each request.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
)

var answerTLS = []byte("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nHello, World!\n")

func connTLS(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 4096)
	for have := 0; have < len(buf); {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		if have += n; !bytes.HasSuffix(buf[:have], []byte("\r\n\r\n")) {
			continue
		}
		have = 0
		if _, err = c.Write(answerTLS); err != nil {
			return
		}
	}
}

func serveTLS(addr, cert, key string) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	l, err := tls.Listen("tcp", addr, &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("listening on https://%s/\n", l.Addr())
	for {
		if c, err := l.Accept(); err == nil {
			go connTLS(c)
		}
	}
}
