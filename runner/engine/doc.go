// Package engine works on one job and ends: it reads the order, gives it to the
// engine for its kind and operation, and writes the result. What the directory
// looks like is said in package jobspec.
//
//	terraform_module                              build, plan, apply → package terraform
//	pulumi                                        build, plan, apply → package pulumi
//	helm_chart           build → package build    plan, apply, run → package helm
//	kubernetes_manifest  build → package build    plan, apply, run → package manifest
//	container_image      build → package build    plan → package image
//	docker_build         build → package build    plan → package image
//	secret_sync                                   plan, apply → package secretsync
//	action                                        plan, apply, run → package action
//
// An engine decides nothing about leases, approval or secrecy: the agent gives
// it orders that were checked, and redacts and seals what it leaves behind.
package engine
