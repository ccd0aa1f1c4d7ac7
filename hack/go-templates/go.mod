module orkestra/hack/go-templates

go 1.26
