// Prints `ready`, and then `tick` each half second.
package main

import (
	"fmt"
	"time"
)

func main() {
	fmt.Println("ready")
	for {
		time.Sleep(500 * time.Millisecond)
		fmt.Println("tick")
	}
}
