// CoreDNS with the plugins that a cluster without an outside world needs. The stock build links every cloud's SDK, which
// takes minutes to compile and triples its size; upstream supports a main of one's own:
// https://coredns.io/2017/07/25/compile-time-enabling-or-disabling-plugins/
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	dnsserver.Directives = []string{"health", "ready", "errors", "cache", "loop", "kubernetes"} // the order of execution
	coremain.Run()
}
