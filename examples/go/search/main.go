// Command search prints the messages that hold a text, as they are found.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	agentindex "flue-grpc/go/flue/agentindex/v1"

	"flue-grpc/examples/connect"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: search TEXT")
	}
	if err := search(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func search(ctx context.Context, text string) error {
	target, err := connect.FromEnvironment()
	if err != nil {
		return err
	}
	conn, err := connect.Dial(target)
	if err != nil {
		return err
	}
	defer conn.Close()

	request := &agentindex.SearchRequest{Query: text}
	return connect.Resume(ctx, func(ctx context.Context) (bool, error) {
		stream, err := agentindex.NewAgentIndexClient(conn).Search(ctx, request)
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
			for _, hit := range response.Hits {
				show(hit)
			}
			request.PageToken = response.NextPageToken
		}
	})
}

// show marks the matches, whose ranges are bytes of the snippet.
func show(hit *agentindex.Hit) {
	marked, from := "", int32(0)
	for _, r := range hit.Ranges {
		marked += hit.Snippet[from:r.Start] + "[" + hit.Snippet[r.Start:r.End] + "]"
		from = r.End
	}
	fmt.Printf("%s\t%s\t%d\t%q\n", hit.Tool, hit.Id, hit.Offset, marked+hit.Snippet[from:])
}
