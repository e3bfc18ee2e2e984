// Command list prints the sessions of every coding agent, newest first.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"

	agentindex "flue-grpc/go/flue/agentindex/v1"

	"flue-grpc/examples/connect"
)

func main() {
	log.SetFlags(0)
	if err := list(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func list(ctx context.Context) error {
	conn, err := connect.Own()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := agentindex.NewAgentIndexClient(conn)
	request := &agentindex.SnapshotRequest{}
	open := func(ctx context.Context) (grpc.ServerStreamingClient[agentindex.SnapshotResponse], error) {
		return client.Snapshot(ctx, request)
	}
	return connect.Each(ctx, open, func(response *agentindex.SnapshotResponse) bool {
		for _, summary := range response.Summaries {
			show(summary)
		}
		request.PageToken = response.NextPageToken
		return request.PageToken == ""
	})
}

func show(summary *agentindex.Summary) {
	ended := "-"
	if summary.EndedAt != nil {
		ended = summary.EndedAt.AsTime().Format(time.RFC3339)
	}
	fmt.Printf("%s\t%s\t%s\t%d messages\t%q\n",
		ended, summary.Tool, summary.Id, summary.MessageCount, summary.Title)
}
