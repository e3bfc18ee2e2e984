package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "flue-grpc/go/flue/agentindex/v1"
	_ "flue-grpc/go/flue/store/v1"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails"
)

var packages = map[string]string{"Store": "flue.store.v1", "AgentIndex": "flue.agentindex.v1"}

// method finds an RPC by a name such as "Store/GetSession".
func method(name string) (path string, descriptor protoreflect.MethodDescriptor, err error) {
	service, rpc, _ := strings.Cut(name, "/")
	full := packages[service] + "." + service
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(full))
	if err != nil {
		return "", nil, err
	}
	descriptor = found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(rpc))
	if descriptor == nil {
		return "", nil, fmt.Errorf("there is no RPC %s", name)
	}
	return "/" + full + "/" + rpc, descriptor, nil
}

func newMessage(descriptor protoreflect.MessageDescriptor) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}

func toMessage(descriptor protoreflect.MessageDescriptor, value any) (proto.Message, error) {
	message, err := newMessage(descriptor)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return message, protojson.Unmarshal(text, message)
}

func fromMessage(message proto.Message) (any, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(text, &value)
}

func invoke(ctx context.Context, conn *grpc.ClientConn, name string, request any) (any, error) {
	path, descriptor, err := method(name)
	if err != nil {
		return nil, err
	}
	in, err := toMessage(descriptor.Input(), request)
	if err != nil {
		return nil, err
	}
	out, err := newMessage(descriptor.Output())
	if err != nil {
		return nil, err
	}
	if err := conn.Invoke(ctx, path, in, out); err != nil {
		return nil, err
	}
	return fromMessage(out)
}

// stream makes the calls of one stream step, one after another.
func (r *runner) stream(ctx context.Context, conn *grpc.ClientConn, s step) (outcome, error) {
	request, _ := r.substitute(s.Request).(map[string]any)
	if request == nil {
		request = map[string]any{}
	}
	if s.LimitEach > 0 {
		request["limit"] = s.LimitEach
	}
	o := outcome{items: []any{}}
	for broken := false; ; {
		o.calls++
		breakAfter := s.BreakAfter
		if broken {
			breakAfter = 0
		}
		stopped, err := r.oneStream(ctx, conn, s, request, breakAfter, &o)
		if err != nil {
			return o, err
		}
		if stopped && breakAfter > 0 {
			broken = true
		} else if !stopped && o.err == nil && s.LimitEach > 0 && text(o.last, "nextPageToken") != "" {
			stopped = true
		} else {
			return o, nil
		}
		goOn(request, s, o.last)
	}
}

func goOn(request map[string]any, s step, last any) {
	if s.ResumeBy != "offset" {
		request["pageToken"] = text(last, "nextPageToken")
		return
	}
	request["offset"] = lookUp(last, "page.next")
	request["revision"] = text(last, "page.revision")
}

// oneStream reads one call to its end, or until it has what the step wants. The
// error is for what is wrong with the scenario; the RPC's own is in o.
func (r *runner) oneStream(
	ctx context.Context, conn *grpc.ClientConn, s step, request map[string]any, breakAfter int, o *outcome,
) (stopped bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path, descriptor, err := method(s.Stream)
	if err != nil {
		return false, err
	}
	in, err := toMessage(descriptor.Input(), request)
	if err != nil {
		return false, err
	}
	call, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err != nil {
		return false, err
	}
	// SendMsg says EOF when the call has failed already; RecvMsg tells why.
	if err := call.SendMsg(in); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if err := call.CloseSend(); err != nil {
		return false, err
	}
	caughtUp := false
	for {
		out, err := newMessage(descriptor.Output())
		if err != nil {
			return false, err
		}
		if err := call.RecvMsg(out); err != nil {
			if !errors.Is(err, io.EOF) {
				o.err = err
			}
			return false, nil
		}
		if o.last, err = fromMessage(out); err != nil {
			return false, err
		}
		if found, ok := lookUp(o.last, s.Items).([]any); ok {
			o.items = append(o.items, found...)
		} else if found := lookUp(o.last, s.Items); found != nil {
			o.items = append(o.items, found)
		}
		if !caughtUp && lookUp(o.last, "caughtUp") == true {
			caughtUp = true
			if err := r.steps(s.WhenCaughtUp); err != nil {
				return false, err
			}
		}
		if wanted := max(s.Until, breakAfter); wanted > 0 && len(o.items) >= wanted {
			return true, nil
		}
		if s.CancelAfter > 0 && len(o.items) >= s.CancelAfter {
			cancel()
		}
	}
}

// failure is a failed call in the words of the scenarios.
func failure(err error) map[string]any {
	found := map[string]any{"code": codeNames[status.Code(err)], "message": status.Convert(err).Message()}
	for _, detail := range status.Convert(err).Details() {
		if message, ok := detail.(proto.Message); ok {
			value, err := fromMessage(message)
			if err == nil && message.ProtoReflect().Descriptor().FullName() == "google.rpc.ErrorInfo" {
				found["reason"] = lookUp(value, "reason")
				found["metadata"] = lookUp(value, "metadata")
				found["domain"] = lookUp(value, "domain")
			}
		}
	}
	return found
}

var codeNames = map[codes.Code]string{
	codes.Canceled:           "CANCELLED",
	codes.Unknown:            "UNKNOWN",
	codes.InvalidArgument:    "INVALID_ARGUMENT",
	codes.DeadlineExceeded:   "DEADLINE_EXCEEDED",
	codes.NotFound:           "NOT_FOUND",
	codes.AlreadyExists:      "ALREADY_EXISTS",
	codes.PermissionDenied:   "PERMISSION_DENIED",
	codes.ResourceExhausted:  "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION",
	codes.Aborted:            "ABORTED",
	codes.OutOfRange:         "OUT_OF_RANGE",
	codes.Unimplemented:      "UNIMPLEMENTED",
	codes.Internal:           "INTERNAL",
	codes.Unavailable:        "UNAVAILABLE",
	codes.DataLoss:           "DATA_LOSS",
	codes.Unauthenticated:    "UNAUTHENTICATED",
}
