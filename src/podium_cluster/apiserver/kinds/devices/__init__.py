"""The kinds of resource.k8s.io: device classes, resource claims and slices."""
