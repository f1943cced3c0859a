// Package deploy tests the folder deploy with the libraries of the programs that read it:
// compose-go, Helm, the types of Kubernetes, Prometheus. It starts no container and no cluster. Its
// subfolder dashboard generates Grafana's dashboard.
//
// It is a separate module, so that the product depends on none of these libraries.
package deploy
