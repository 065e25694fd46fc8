{{/* The objects of a process: a file of tools.chart, with the release's namespace and image filled in. */}}
{{- define "podium.objects" -}}
{{- $image := printf "%s:%s" .root.Values.image.repository (default .root.Chart.AppVersion .root.Values.image.tag) -}}
{{- .root.Files.Get (printf "files/%s.yaml" .file) | replace "NAMESPACE_OF_THE_RELEASE" .root.Release.Namespace | replace "IMAGE_OF_THE_RELEASE" $image | replace "NAME_OF_THE_SCHEDULER" .root.Values.scheduler.name -}}
{{- end -}}

{{/* Fills values into an object, in place: labels of Helm, replicas, resources and where pods may run. */}}
{{- define "podium.fill" -}}
{{- $labels := dict "app.kubernetes.io/managed-by" .root.Release.Service "app.kubernetes.io/instance" .root.Release.Name "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- $_ := set .object.metadata "labels" (merge (default dict .object.metadata.labels) $labels) -}}
{{- if eq .object.kind "Deployment" -}}
{{- $pod := .object.spec.template.spec -}}
{{- with .values.replicas -}}{{- $_ := set $.object.spec "replicas" (int .) -}}{{- end -}}
{{- with .values.nodeSelector -}}{{- $_ := set $pod "nodeSelector" . -}}{{- end -}}
{{- with .values.tolerations -}}{{- $_ := set $pod "tolerations" . -}}{{- end -}}
{{- with .root.Values.image.pullSecrets -}}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- range $container := $pod.containers -}}
{{- if and $.values.resources (ne $container.name "kube-scheduler") -}}{{- $_ := set $container "resources" $.values.resources -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The configuration of the scheduler: as it was given, without a kubeconfig (podium.manifests.scheduler says how), or made of mode, name and measuredLoad. */}}
{{- define "podium.config" -}}
{{- $values := .Values.scheduler -}}
{{- if $values.config -}}
{{- if $values.measuredLoad.enabled -}}{{- fail "scheduler.measuredLoad and scheduler.config: enable MeasuredLoad in the configuration instead" -}}{{- end -}}
{{- $text := $values.config -}}
{{- with (default dict (fromYaml $text).clientConnection).kubeconfig -}}
{{- $named := regexQuoteMeta . -}}
{{- $text = regexReplaceAll (printf "(\\bkubeconfig[\"']?\\s*:\\s*)[\"']?%s[\"']?([\\s,}]|$)" $named) $text "${1}\"\"${2}" -}}
{{- $text = regexReplaceAll (printf "(?m)^[ \\t]*#.*%s.*\\n|[ \\t]+#.*%s.*$" $named $named) $text "" -}}
{{- if (fromYaml $text).clientConnection.kubeconfig -}}{{- fail "scheduler.config: write clientConnection.kubeconfig: \"\": a pod has no such file; it has its service account" -}}{{- end -}}
{{- end -}}
{{- $text -}}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {{ ternary $values.name "default-scheduler" (eq $values.mode "second") }}
{{- if $values.measuredLoad.enabled }}
  plugins:
    score:
      enabled:
      - name: MeasuredLoad
        weight: {{ $values.measuredLoad.weight }}
  pluginConfig:
  - name: MeasuredLoad
    args:
      prometheusAddress: {{ $values.measuredLoad.prometheusAddress }}
{{- end }}
{{ end -}}
{{- end -}}

{{/* The plugins that a configuration enables, as a list: {names: […]}. */}}
{{- define "podium.plugins" -}}
{{- $names := list -}}
{{- $default := .default -}}
{{- range $profile := default (list dict) .config.profiles -}}
{{- $plugins := default dict $profile.plugins -}}
{{- $disabled := list -}}
{{- range (default dict $plugins.multiPoint).disabled -}}{{- $disabled = append $disabled .name -}}{{- end -}}
{{- if not (has "*" $disabled) -}}
{{- range $default -}}{{- if not (has . $disabled) -}}{{- $names = append $names . -}}{{- end -}}{{- end -}}
{{- end -}}
{{- range $point, $set := $plugins -}}{{- range (default dict $set).enabled -}}{{- $names = append $names .name -}}{{- end -}}{{- end -}}
{{- end -}}
{{- dict "names" (uniq $names) | toYaml -}}
{{- end -}}

{{/* Whether one of the plugins that read utilisation reads it from metrics-server, as they do unless told otherwise. */}}
{{- define "podium.readsMetricsServer" -}}
{{- $names := .names -}}
{{- range $profile := default (list dict) .config.profiles -}}
{{- $given := dict -}}
{{- range $profile.pluginConfig -}}{{- $_ := set $given .name (default dict .args) -}}{{- end -}}
{{- range $name := list "TargetLoadPacking" "LoadVariationRiskBalancing" "LowRiskOverCommitment" -}}
{{- $args := default dict (get $given $name) -}}
{{- $kind := default "KubernetesMetricsServer" (default dict $args.metricProvider).type -}}
{{- if and (has $name $names) (not $args.watcherAddress) (eq $kind "KubernetesMetricsServer") -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A lease that the processes of a release keep. It is listed so that it goes with the release. */}}
{{- define "podium.leaseObject" -}}
{{- $object := dict "apiVersion" "coordination.k8s.io/v1" "kind" "Lease" "metadata" (dict "name" .name "namespace" .namespace) }}
{{- include "podium.fill" (dict "root" .root "object" $object "values" dict) }}
---
{{ toYaml $object }}
{{- end -}}

{{/* The rules for one object: it may be made, read and changed, or with `only` read. */}}
{{- define "podium.named" -}}
{{- $kind := dict "apiGroups" (list (default "" .group)) "resources" (list .resource) -}}
{{- $named := merge (dict "resourceNames" (list .name)) $kind -}}
{{- if .only -}}
{{- list (merge (dict "verbs" (list "get")) $named) | toYaml -}}
{{- else -}}
{{- list (merge (dict "verbs" (list "create")) $kind) (merge (dict "verbs" (list "get" "update")) $named) | toYaml -}}
{{- end -}}
{{- end -}}

{{/* The ConfigMaps in which plugins that learn keep it: those of their arguments, or their usual ones. */}}
{{- define "podium.lessons" -}}
{{- $found := list -}}
{{- $names := .names -}}
{{- $keeps := .keeps -}}
{{- range $profile := default (list dict) .config.profiles -}}
{{- $given := dict -}}
{{- range $profile.pluginConfig -}}{{- $_ := set $given .name (default dict .args) -}}{{- end -}}
{{- range $name, $usual := $keeps -}}
{{- $args := default dict (get $given $name) -}}
{{- if has $name $names -}}
{{- $found = append $found (dict "namespace" (default $usual.namespace $args.namespace) "name" (default $usual.configMap $args.configMap)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $found | toYaml -}}
{{- end -}}

{{/* The scheduler's lease: that of the configuration; its own name where it stands beside kube-scheduler and names none. */}}
{{- define "podium.lease" -}}
{{- $beside := true -}}
{{- range $profile := default (list dict) .config.profiles -}}
{{- if eq (default "default-scheduler" $profile.schedulerName) "default-scheduler" -}}{{- $beside = false -}}{{- end -}}
{{- end -}}
{{- $given := (default dict .config.leaderElection).resourceName -}}
{{- if $given -}}{{- $given -}}{{- else -}}{{- ternary .name "kube-scheduler" $beside -}}{{- end -}}
{{- end -}}

{{/* The folders of the files that plugins read: tokens and certificates, as podium.manifests.scheduler finds them. */}}
{{- define "podium.secretFolders" -}}
{{- $found := list -}}
{{- $names := .names -}}
{{- range $profile := default (list dict) .config.profiles -}}
{{- range $each := $profile.pluginConfig -}}
{{- if has $each.name $names -}}
{{- $args := default dict $each.args -}}
{{- range $holder := list $args (default dict $args.source) -}}
{{- $tls := default dict $holder.tls -}}
{{- range $file := list $holder.tokenFile $tls.caFile $tls.certFile $tls.keyFile -}}
{{- if and $file (hasPrefix "/" $file) (not (hasPrefix "/var/run/secrets/kubernetes.io/" $file)) -}}{{- $found = append $found (dir $file) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- uniq $found | sortAlpha | toYaml -}}
{{- end -}}

{{/* The Secret that is mounted at a folder. */}}
{{- define "podium.secret" -}}
{{- $last := base .folder | lower | replace "." "-" | replace "_" "-" | trimAll "-" -}}
{{- printf "%s-%s" .name (default "files" $last) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Whether a plugin asks a server for its decisions. */}}
{{- define "podium.asksServers" -}}
{{- $names := .names -}}
{{- range $profile := default (list dict) .config.profiles -}}
{{- range $each := $profile.pluginConfig -}}
{{- if and (has $each.name $names) (default dict $each.args).url -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
