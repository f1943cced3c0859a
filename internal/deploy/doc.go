// Package deploy tests what is in the folder deploy, by the libraries of those who will read it: compose-go, Helm, the
// types of Kubernetes, Prometheus. It starts no container and no cluster. Its subfolder dashboard generates Grafana's
// dashboard.
//
// It is a module of its own, so that the product depends on none of these.
package deploy
