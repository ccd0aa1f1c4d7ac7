// The webhook that `make bench` compares with that of `ork`: a validating webhook of controller-runtime with one rule, as a Go
// operator would have it. `go-webhook PORT FOLDER` serves on the loopback with the certificate server.crt and server.key of FOLDER.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Shop is the kind of bench/crd.yaml.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Image    string `json:"image"`
		Message  string `json:"message"`
		Replicas int32  `json:"replicas"`
		Port     int32  `json:"port"`
	} `json:"spec"`
}

// DeepCopyObject makes it a runtime.Object, which the decoder asks for.
func (shop *Shop) DeepCopyObject() runtime.Object {
	copied := *shop
	shop.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func main() {
	if err := serve(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "go-webhook:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	log.SetLogger(logr.Discard())
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: go-webhook PORT FOLDER")
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	decoder := admission.NewDecoder(runtime.NewScheme())
	judge := func(_ context.Context, request admission.Request) admission.Response {
		shop := &Shop{}
		if err := decoder.DecodeRaw(request.Object, shop); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if strings.ToLower(shop.Spec.Message) == "closed" {
			return admission.Denied("it is closed")
		}
		return admission.Allowed("")
	}
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: port, CertDir: os.Args[2], CertName: "server.crt", KeyName: "server.key",
	})
	server.Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(judge)})
	return server.Start(ctx)
}
