// Package connect opens a connection to a server and opens broken streams again.
package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	// ReceiveBytes is what a client of the Store allows: a message of 32 MiB and
	// its envelope.
	ReceiveBytes = 36 << 20

	attempts    = 8                // of a stream that has brought nothing yet
	patience    = 10 * time.Minute // with one that has
	firstWait   = 100 * time.Millisecond
	longestWait = 2 * time.Second
)

// Target says where a server is. Address is "unix:/path" or "host:port"; CAFile,
// a PEM file, switches TLS on.
type Target struct {
	Address string
	Token   string
	CAFile  string
}

// FromEnvironment reads FLUE_ADDRESS, FLUE_TOKEN_FILE and FLUE_CA_FILE. Without
// an address it is this user's own server on its default socket.
func FromEnvironment() (Target, error) {
	target := Target{Address: os.Getenv("FLUE_ADDRESS"), CAFile: os.Getenv("FLUE_CA_FILE")}
	if target.Address == "" {
		path := defaultSocket()
		if err := refuseStranger(path); err != nil {
			return Target{}, err
		}
		target.Address = "unix:" + path
	}
	if file := os.Getenv("FLUE_TOKEN_FILE"); file != "" {
		token, err := readToken(file)
		if err != nil {
			return Target{}, err
		}
		target.Token = token
	}
	return target, nil
}

// Own dials the server that FromEnvironment finds.
func Own() (*grpc.ClientConn, error) {
	target, err := FromEnvironment()
	if err != nil {
		return nil, err
	}
	return Dial(target)
}

// Dial prepares a connection, which is made by the first call.
func Dial(target Target) (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	if target.CAFile != "" {
		pem, err := os.ReadFile(target.CAFile)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", target.CAFile)
		}
		transport = credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(ReceiveBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstWait, Multiplier: 2, Jitter: 0.2, MaxDelay: longestWait},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if target.Token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer{target}))
	}
	return grpc.NewClient(uri(target.Address), options...)
}

// uri quotes the path of a socket, since gRPC takes a URI.
func uri(address string) string {
	if path, found := strings.CutPrefix(address, "unix:"); found {
		return (&url.URL{Scheme: "unix", Path: path}).String()
	}
	return address
}

// Each gives take every response of a stream. A stream that breaks is opened again,
// later after each failure without progress, and for ten minutes when it had begun;
// take notes in the request of open where that goes on, and says whether the response
// was the last of what is wanted: a break after it is the end. Only broken streams are
// worth it: the server stopped, the connection went away, or a reader that paused was
// cut off.
func Each[Response any](
	ctx context.Context,
	open func(context.Context) (grpc.ServerStreamingClient[Response], error),
	take func(*Response) (isLast bool),
) error {
	begun, complete, alive := false, false, time.Now()
	for failures := 0; ; {
		err := drain(ctx, open, func(response *Response) {
			failures, begun = 0, true
			complete = take(response)
		})
		if err == nil || ctx.Err() != nil || !isBroken(err) {
			return err
		}
		if complete {
			return nil
		}
		if failures == 0 {
			alive = time.Now()
		}
		failures++
		if (!begun && failures == attempts) || time.Since(alive) > patience {
			return err
		}
		wait := min(longestWait, firstWait<<min(failures-1, 10))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

func isBroken(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.Aborted || code == codes.Canceled
}

func drain[Response any](
	ctx context.Context,
	open func(context.Context) (grpc.ServerStreamingClient[Response], error),
	take func(*Response),
) error {
	stream, err := open(ctx)
	if err != nil {
		return err
	}
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		take(response)
	}
}

// bearer sends the token with every call, over plaintext only where nobody else
// can listen.
type bearer struct{ target Target }

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.target.Token}, nil
}

func (b bearer) RequireTransportSecurity() bool {
	if strings.HasPrefix(b.target.Address, "unix:") {
		return false
	}
	host, _, err := net.SplitHostPort(b.target.Address)
	address := net.ParseIP(host)
	return err != nil || address == nil || !address.IsLoopback()
}

// readToken takes the first token of a server's token file, whose lines are
// "ROLE TOKEN NAME", or of a file that holds just a token.
func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) == 3:
			return fields[1], nil
		default:
			return fields[0], nil
		}
	}
	return "", fmt.Errorf("there is no token in %s", file)
}

// refuseStranger refuses a socket that another user, who is not root, has put there or
// can put there. A missing one passes.
func refuseStranger(path string) error {
	for _, each := range []string{filepath.Dir(path), path} {
		info, err := os.Stat(each)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if owner != 0 && owner != os.Geteuid() {
			return fmt.Errorf("%s belongs to user %d", each, owner)
		}
	}
	return nil
}

func defaultSocket() string {
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		return filepath.Join(runtime, "flue-grpc", "flue.sock")
	}
	data := os.Getenv("XDG_DATA_HOME")
	if data == "" {
		home, _ := os.UserHomeDir()
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "flue-grpc", "flue.sock")
}
