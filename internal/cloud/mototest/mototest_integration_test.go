//go:build integration

package mototest

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/percore/percore/internal/cloud/awswire"
)

func TestServer(t *testing.T) {
	s := Start(t)
	s.Setenv(t)
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c := awswire.New(cfg, nil)
	p := awswire.Params{"GroupName": "percore-x", "Strategy": "cluster"}.Tags("placement-group", map[string]string{"percore": "1"})
	var done awswire.Done
	if err := c.EC2(t.Context(), "CreatePlacementGroup", p, &done); err != nil {
		t.Fatal(err)
	}
	if err := c.EC2(t.Context(), "CreatePlacementGroup", p, &done); awswire.Code(err) != "InvalidPlacementGroup.Duplicate" {
		t.Errorf("a second group of that name: %v", err)
	}
	var groups awswire.PlacementGroups
	if err := c.EC2(t.Context(), "DescribePlacementGroups", awswire.Params{}.Filter("tag:percore", "1"), &groups); err != nil {
		t.Fatal(err)
	}
	if len(groups.Groups) != 1 || groups.Groups[0].Name != "percore-x" || groups.Groups[0].Tags.Get("percore") != "1" {
		t.Errorf("placement groups %+v", groups)
	}
	var parameters struct {
		Parameters []struct{ Name, Value string }
	}
	if err := c.JSON(t.Context(), "ssm", "AmazonSSM", "GetParameters", map[string]any{"Names": []string{"/aws/service/debian/release/13/latest/arm64"}}, &parameters); err != nil {
		t.Fatal(err)
	}
	if len(parameters.Parameters) != 1 {
		t.Errorf("parameters %+v", parameters)
	}
	if got := s.Actions(); !slices.Contains(got, "ec2:DescribePlacementGroups") || !slices.Contains(got, "ssm:GetParameters") {
		t.Errorf("the actions were %v", got)
	}
}

func TestPlainServer(t *testing.T) {
	s := Start(t, NoPlacementGroups())
	s.Setenv(t)
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var groups awswire.PlacementGroups
	err = awswire.New(cfg, nil).EC2(t.Context(), "DescribePlacementGroups", nil, &groups)
	if awswire.Code(err) != "InvalidAction" {
		t.Errorf("a call that moto does not know is answered by %v; if by none, the harness need not add placement groups any more", err)
	}
}
