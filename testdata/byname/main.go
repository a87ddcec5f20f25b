// The program finds a method by a name that is known only at run time. TestLinkedMethods builds it to see that the linker says so.
package main

import (
	"os"
	"reflect"
)

func main() {
	_, ok := reflect.TypeFor[*os.File]().MethodByName(os.Args[0])
	println(ok)
}
