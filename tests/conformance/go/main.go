// Command conformance runs the scenarios of tests/conformance with Go's gRPC, and
// prints one line of JSON for each.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"

	"google.golang.org/grpc"

	"flue-grpc/examples/connect"
)

type scenario struct {
	Name       string   `json:"name"`
	Transports []string `json:"transports"`
	Steps      []step   `json:"steps"`
}

type result struct {
	Scenario string `json:"scenario"`
	Outcome  string `json:"outcome"`
	Detail   string `json:"detail,omitempty"`
}

type options struct {
	address, token, ca, home, run, transport string
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.address, "address", "", "unix:/path or host:port")
	flag.StringVar(&o.token, "token", "", "bearer token")
	flag.StringVar(&o.ca, "ca", "", "PEM file of the root that the server's certificate has")
	flag.StringVar(&o.home, "home", "", "home directory that the server reads")
	flag.StringVar(&o.run, "run", "", "what makes names unique")
	flag.StringVar(&o.transport, "transport", "unix", "unix or tcp")
	flag.Parse()
	for _, file := range flag.Args() {
		if err := runFile(o, file); err != nil {
			log.Fatal(err)
		}
	}
}

func runFile(o options, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var scenarios []scenario
	if err := json.Unmarshal(text, &scenarios); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, s := range scenarios {
		outcome := result{Scenario: s.Name, Outcome: "passed"}
		if s.Transports != nil && !slices.Contains(s.Transports, o.transport) {
			outcome.Outcome = "not applicable"
		} else if err := runScenario(o, s); err != nil {
			outcome.Outcome, outcome.Detail = "failed", err.Error()
		}
		line, err := json.Marshal(outcome)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

func runScenario(o options, s scenario) error {
	conns := map[string]*grpc.ClientConn{}
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	dial := func(token string) (*grpc.ClientConn, error) {
		if conns[token] == nil {
			conn, err := connect.Dial(connect.Target{Address: o.address, Token: token, CAFile: o.ca})
			if err != nil {
				return nil, err
			}
			conns[token] = conn
		}
		return conns[token], nil
	}
	r := &runner{
		dial:  dial,
		token: o.token,
		home:  o.home,
		variables: map[string]any{
			"run": fmt.Sprintf("%s-%s", o.run, s.Name),
		},
	}
	return r.steps(s.Steps)
}
