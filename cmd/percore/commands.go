package main

import "github.com/spf13/cobra"

// subcommands lists them in the order in which a user meets them.
func subcommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newDoctorCmd(a),
		newRunCmd(a),
		newVerifyCmd(a),
		newCloudCmd(a),
		newLsCmd(a),
		newShowCmd(a),
		newReportCmd(a),
		newClaimsCmd(a),
		newCompareCmd(a),
		newPlanCmd(a),
		newImportCmd(a),
		newCleanCmd(a),
		newVersionCmd(a),
	}
}
