// Package v1 stands in for operator-sdk's Ansible project plugin. operator-sdk imports it to scaffold Ansible
// projects; running and packaging operators, which is all that is compared here, does not reach it.
package v1

import (
	"sigs.k8s.io/kubebuilder/v4/pkg/config"
	cfgv3 "sigs.k8s.io/kubebuilder/v4/pkg/config/v3"
	"sigs.k8s.io/kubebuilder/v4/pkg/plugin"
)

// Plugin is a project plugin without any sub-command.
type Plugin struct{}

// Name is the plugin's qualified name.
func (Plugin) Name() string { return "ansible.stand-in" }

// Version is the plugin's version.
func (Plugin) Version() plugin.Version { return plugin.Version{Number: 1} }

// SupportedProjectVersions lists the versions of the PROJECT file.
func (Plugin) SupportedProjectVersions() []config.Version { return []config.Version{cfgv3.Version} }
