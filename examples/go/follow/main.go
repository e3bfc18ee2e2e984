// Command follow prints a transcript and goes on as it grows, also after the
// server or the connection was gone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	agentindex "flue-grpc/go/flue/agentindex/v1"

	"flue-grpc/examples/connect"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: follow TOOL ID")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, os.Args[1], os.Args[2]); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func follow(ctx context.Context, tool, id string) error {
	target, err := connect.FromEnvironment()
	if err != nil {
		return err
	}
	conn, err := connect.Dial(target)
	if err != nil {
		return err
	}
	defer conn.Close()

	request := &agentindex.ReadTranscriptRequest{Tool: tool, Id: id, Follow: true}
	return connect.Resume(ctx, func(ctx context.Context) (bool, error) {
		stream, err := agentindex.NewAgentIndexClient(conn).ReadTranscript(ctx, request)
		if err != nil {
			return false, err
		}
		for progressed := false; ; progressed = true {
			response, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return true, nil
			}
			if err != nil {
				return progressed, err
			}
			for _, message := range response.Page.Messages {
				fmt.Printf("%d\t%s\t%q\n", message.Offset, message.Role, message.Text)
			}
			// From here another call goes on, in this very file.
			request.Offset = &response.Page.Next
			request.Revision = response.Page.Revision
		}
	})
}
