package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
)

const (
	callSeconds       = 60
	eventuallySeconds = 30
	eventuallyPause   = 50 * time.Millisecond
)

type step struct {
	Call   string `json:"call"`
	Stream string `json:"stream"`
	Append string `json:"append"`
	Write  string `json:"write"`
	Remove string `json:"remove"`
	Repeat int    `json:"repeat"`

	Request      map[string]any    `json:"request"`
	Items        string            `json:"items"`
	LimitEach    int               `json:"limit_each"`
	BreakAfter   int               `json:"break_after"`
	ResumeBy     string            `json:"resume_by"`
	Until        int               `json:"until"`
	CancelAfter  int               `json:"cancel_after"`
	WhenCaughtUp []step            `json:"when_caught_up"`
	Join         bool              `json:"join"`
	Token        *string           `json:"token"`
	DeadlineMs   int               `json:"deadline_ms"`
	Eventually   bool              `json:"eventually"`
	Save         map[string]string `json:"save"`
	Expect       map[string]any    `json:"expect"`
	Text         string            `json:"text"`
	Steps        []step            `json:"steps"`
}

type runner struct {
	dial      func(token string) (*grpc.ClientConn, error)
	token     string
	home      string
	variables map[string]any
}

// outcome is what a call or stream came to.
type outcome struct {
	response any
	items    []any
	last     any
	calls    int
	err      error
}

func (r *runner) steps(steps []step) error {
	for number, s := range steps {
		if err := r.step(s); err != nil {
			return fmt.Errorf("step %d: %w", number+1, err)
		}
	}
	return nil
}

func (r *runner) step(s step) error {
	switch {
	case s.Repeat > 0:
		for i := 1; i <= s.Repeat; i++ {
			r.variables["i"] = fmt.Sprint(i)
			if err := r.steps(s.Steps); err != nil {
				return err
			}
		}
		return nil
	case s.Append != "":
		return r.write(s.Append, s.Text, os.O_APPEND|os.O_WRONLY|os.O_CREATE)
	case s.Write != "":
		return r.write(s.Write, s.Text, os.O_TRUNC|os.O_WRONLY|os.O_CREATE)
	case s.Remove != "":
		return os.Remove(filepath.Join(r.home, r.text(s.Remove)))
	default:
		return r.callUntilExpected(s)
	}
}

func (r *runner) write(file, text string, flags int) error {
	path := filepath.Join(r.home, r.text(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(r.text(text)); err != nil {
		return err
	}
	return f.Close()
}

func (r *runner) callUntilExpected(s step) error {
	end := time.Now().Add(eventuallySeconds * time.Second)
	for {
		err := r.callOnce(s)
		if err == nil || !s.Eventually || time.Now().After(end) {
			return err
		}
		time.Sleep(eventuallyPause)
	}
}

func (r *runner) callOnce(s step) error {
	deadline := callSeconds * time.Second
	if s.DeadlineMs > 0 {
		deadline = time.Duration(s.DeadlineMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	token := r.token
	if s.Token != nil {
		token = *s.Token
	}
	conn, err := r.dial(token)
	if err != nil {
		return err
	}
	var o outcome
	if s.Call != "" {
		o.response, o.err = invoke(ctx, conn, s.Call, r.substitute(s.Request))
		o.calls = 1
	} else if o, err = r.stream(ctx, conn, s); err != nil {
		return err
	}
	if err := r.check(s, o); err != nil {
		return fmt.Errorf("%s%s: %w", s.Call, s.Stream, err)
	}
	return r.save(s, o)
}

func (r *runner) save(s step, o outcome) error {
	whole := o.response
	if s.Stream != "" {
		whole = map[string]any{"items": o.items, "last": o.last}
	}
	for name, path := range s.Save {
		value := lookUp(whole, path)
		if value == nil {
			text, _ := json.Marshal(whole)
			return fmt.Errorf("there is no %s in %s", path, text)
		}
		r.variables[name] = value
	}
	return nil
}
