"""A ReFrame test: every node of a partition is mapped, and none may deviate from its equals.

    reframe -c reframe_fleet.py -r -S num_tasks=64

It needs `isochrone` in PATH and one task a node; `num_tasks=0` takes all nodes that are idle. The atlases stay in the
stage directory, the page `fleet.html` is copied to the output directory.
"""

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class FleetTest(rfm.RunOnlyRegressionTest):
    descr = "no node deviates from its equals in latency, bandwidth or settings"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    num_tasks = 0
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = "10m"
    executable = "isochrone"
    executable_opts = ["map", "--quick", "--fleet", "atlases"]
    # 0 none deviates, 4 one does, 1 and 2 it could not be said.
    postrun_cmds = [
        "isochrone fleet outliers atlases --check --html=fleet.html; echo \"outliers: $?\"",
    ]
    keep_files = ["fleet.html"]

    @sanity_function
    def none_deviates(self):
        atlases = sn.count(sn.glob("atlases/*.atlas"))
        # A launcher that starts fewer tasks, or a node that was not measured, must not pass for a sound node; nor must
        # a fleet of which nothing could be compared: fewer than three equal nodes, or all of them busy.
        return sn.all([
            sn.assert_ge(atlases, max(1, self.num_tasks), "{0} nodes left an atlas, of {1}"),
            sn.assert_not_found(r"nothing could be compared", self.stdout, "nothing could be compared: see the output"),
            sn.assert_found(r"^outliers: 0$", self.stdout, "a node deviates: see fleet.html"),
        ])
