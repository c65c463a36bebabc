// A worker of peers.py: `objects OBJECTS PORT`; `/` touches few objects, `/all` all, `/sum` is a checksum of all.
// With the variable TIMER it touches one of them by itself at that interval, in seconds.
package main

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"os"
	"strconv"
	"time"
)

type object struct {
	number int
	text   string
}

var objects []*object
var seen int

func answer(path string) int {
	value := 0
	switch path {
	case "/all":
		for _, one := range objects {
			value += one.number + len(one.text)
		}
	case "/sum":
		sum := uint32(0)
		for _, one := range objects {
			sum = crc32.Update(sum, crc32.IEEETable, []byte(one.text))
		}
		value = int(sum)
	default:
		value = objects[len(objects)-1].number
	}
	return value
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	for n := 0; n < count; n++ {
		objects = append(objects, &object{n, fmt.Sprintf("value %d of %d", n, count)})
	}
	if seconds, err := strconv.ParseFloat(os.Getenv("TIMER"), 64); err == nil {
		go func() {
			for range time.Tick(time.Duration(seconds * float64(time.Second))) {
				seen = objects[0].number
			}
		}()
	}
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		fmt.Fprintf(response, "[%d, %d]", count, answer(request.URL.Path))
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[2], nil)
}
