// Command search prints the messages that hold a text, as they are found.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/grpc"

	agentindex "flue-grpc/go/flue/agentindex/v1"

	"flue-grpc/examples/connect"
)

const most = 50 // hits, over as many calls as that takes

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
	conn, err := connect.Own()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := agentindex.NewAgentIndexClient(conn)
	request := &agentindex.SearchRequest{Query: text, Limit: most}
	open := func(ctx context.Context) (grpc.ServerStreamingClient[agentindex.SearchResponse], error) {
		return client.Search(ctx, request)
	}
	return connect.Each(ctx, open, func(response *agentindex.SearchResponse) bool {
		for _, hit := range response.Hits {
			show(hit)
		}
		request.PageToken = response.NextPageToken
		request.Limit -= int32(len(response.Hits))
		return request.PageToken == "" || response.Truncated || request.Limit <= 0
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
