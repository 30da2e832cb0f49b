// kube-router's NetworkPolicy controller alone. The stock program links two more, which would route pods and services:
// here the bridge and kube-proxy do that. It writes its rules by iptables and ipset into the node's network namespace.
package main

import (
	"flag"
	"log"
	"sync"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	node := flag.String("node", "", "name of this node")
	services := flag.String("services", "", "the range of service addresses")
	flag.Parse()

	access, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(access)
	check(err)

	config := options.NewKubeRouterConfig()
	config.EnableIPv4 = true
	config.HostnameOverride = *node
	config.ClusterIPCIDRs = []string{*services}

	forever := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(forever)
	factory.WaitForCacheSync(forever)

	tables, sets, err := netpol.NewIPTablesHandlers(config)
	check(err)
	controller, err := netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &sync.Mutex{}, tables, sets)
	check(err)
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, namespaces: controller.NamespaceEventHandler,
		policies: controller.NetworkPolicyEventHandler,
	} {
		_, err := informer.AddEventHandler(handler)
		check(err)
	}

	beats := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() { // it waits where nobody takes its heartbeats
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(beats, forever, &running)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
