// Command follow prints a transcript and goes on as it grows, also after the
// server or the connection was gone.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"

	"google.golang.org/grpc"

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
	conn, err := connect.Own()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := agentindex.NewAgentIndexClient(conn)
	request := &agentindex.ReadTranscriptRequest{Tool: tool, Id: id, Follow: true}
	open := func(ctx context.Context) (grpc.ServerStreamingClient[agentindex.ReadTranscriptResponse], error) {
		return client.ReadTranscript(ctx, request)
	}
	return connect.Each(ctx, open, func(response *agentindex.ReadTranscriptResponse) bool {
		for _, message := range response.Page.Messages {
			role := strings.TrimPrefix(message.Role.String(), "ROLE_")
			fmt.Printf("%d\t%s\t%q\n", message.Offset, role, message.Text)
		}
		// From here another call goes on, in this very file.
		request.Offset = &response.Page.Next
		request.Revision = response.Page.Revision
		return false
	})
}
