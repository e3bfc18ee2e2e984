// Command list prints the sessions of every coding agent, newest first.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

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
	target, err := connect.FromEnvironment()
	if err != nil {
		return err
	}
	conn, err := connect.Dial(target)
	if err != nil {
		return err
	}
	defer conn.Close()

	request := &agentindex.SnapshotRequest{}
	return connect.Resume(ctx, func(ctx context.Context) (bool, error) {
		stream, err := agentindex.NewAgentIndexClient(conn).Snapshot(ctx, request)
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
			for _, summary := range response.Summaries {
				show(summary)
			}
			request.PageToken = response.NextPageToken
		}
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
