"""A moto server for percore's tests.

    server.py PORTFILE

moto plays AWS. What percore needs and moto has not is added here: Debian's
public image parameters, the quota of running vCPUs, placement groups, the refusal to take
tags from what has not the tag percore, as docs/iam-policy.json has it, a list of the
actions that were called, at GET /percore/actions, and how many of which kind have a tag,
at GET /percore/tagged?key=KEY&value=VALUE.

Environment: PERCORE_MOTO_VCPUS is the quota of every family (64),
PERCORE_MOTO_PLACEMENT_GROUPS=no leaves placement groups as unknown as they are
to moto, PERCORE_MOTO_NO_QUOTAS=yes refuses to tell quotas.
"""

import io
import json
import os
import re
import sys
import tempfile
import urllib.parse

# Debian's account, whose images its parameters name.
DEBIAN = "136693071363"
IMAGES = {"amd64": "ami-0d13a0d13a0d13a64", "arm64": "ami-0d13a0d13a0d13a8a"}


def write_images():
    """The machine images that exist; moto reads the file when it is imported."""
    images = [
        {
            "ami_id": image,
            "state": "available",
            "public": True,
            "owner_id": DEBIAN,
            "image_location": "amazon/debian-13-" + arch,
            "sriov": "simple",
            "root_device_type": "ebs",
            "root_device_name": "/dev/xvda",
            "description": "Debian 13 (" + arch + ")",
            "image_type": "machine",
            "platform": None,
            "architecture": "x86_64" if arch == "amd64" else arch,
            "name": "debian-13-" + arch,
            "virtualization_type": "hvm",
            "hypervisor": "xen",
        }
        for arch, image in IMAGES.items()
    ]
    handle, path = tempfile.mkstemp(prefix="percore-moto-", suffix=".json")
    with os.fdopen(handle, "w") as f:
        json.dump(images, f)
    os.environ["MOTO_AMIS_PATH"] = path
    return path


images_path = write_images()

import moto.ec2.models.tags as ec2_tags  # noqa: E402
import moto.ec2.responses as ec2_responses  # noqa: E402
import moto.servicequotas.models as quotas  # noqa: E402
import moto.ssm.models as ssm  # noqa: E402
from moto.ec2 import ec2_backends  # noqa: E402
from moto.core.responses import ActionResult  # noqa: E402
from moto.ec2.exceptions import EC2ClientError  # noqa: E402
from moto.moto_server.werkzeug_app import (  # noqa: E402
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.servicequotas.exceptions import NoSuchResource  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402

os.unlink(images_path)


# ------------------------------------------------------- Debian's parameters

DEBIAN_PATH = "/aws/service/debian/release/13/latest/"
plain_check = ssm.ParameterDict._check_loading_status


def check_loading_status(self, key):
    plain_check(self, key)
    key = str(key or "")
    if key.startswith("/aws/service/debian/") and not getattr(self, "has_debian", False):
        self.has_debian = True
        for arch, image in IMAGES.items():
            name = DEBIAN_PATH + arch
            super(ssm.ParameterDict, self).__getitem__(name).append(
                ssm.Parameter(
                    account_id=self.account_id,
                    name=name,
                    value=image,
                    parameter_type="String",
                    description=None,
                    allowed_pattern=None,
                    keyid=None,
                    last_modified_date=1760000000.0,
                    version=1,
                    data_type="aws:ec2:image",
                )
            )


ssm.ParameterDict._check_loading_status = check_loading_status


# ------------------------------------------------------------------- quotas

VCPUS = float(os.environ.get("PERCORE_MOTO_VCPUS", "64"))
NAMES = {
    "L-1216C47A": "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "L-7295265B": "Running On-Demand X instances",
    "L-DB2E81BA": "Running On-Demand G and VT instances",
}
plain_quota = quotas.ServiceQuotasBackend.get_service_quota


class AccessDenied(NoSuchResource):
    def __init__(self):
        super().__init__()
        self.error_type = "AccessDeniedException"
        self.message = "User is not authorized to perform: servicequotas:GetServiceQuota"
        self.description = json.dumps({"__type": self.error_type, "message": self.message})


def get_service_quota(self, service_code, quota_code):
    if os.environ.get("PERCORE_MOTO_NO_QUOTAS") == "yes":
        raise AccessDenied()
    if service_code == "ec2" and quota_code in NAMES:
        return {
            "ServiceCode": "ec2",
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaCode": quota_code,
            "QuotaName": NAMES[quota_code],
            "Value": VCPUS,
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }
    return plain_quota(self, service_code, quota_code)


quotas.ServiceQuotasBackend.get_service_quota = get_service_quota


# AWS names this kind otherwise than moto does.
ec2_tags.EC2_PREFIX_TO_RESOURCE["eipalloc"] = "elastic-ip"


# --------------------------------------------------------- placement groups

groups = {}  # (account, region) -> name -> group


def of_caller(response):
    return groups.setdefault((response.current_account, response.region), {})


def create_placement_group(self):
    mine = of_caller(self)
    name = self._get_param("GroupName")
    if name in mine:
        raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
    self.error_on_dryrun()
    tags = self._parse_tag_specification("placement-group").get("placement-group", {})
    ident = "pg-%017x" % (abs(hash((name, len(mine)))) % 16**17)
    mine[name] = {
        "GroupName": name,
        "GroupId": ident,
        "GroupArn": f"arn:aws:ec2:{self.region}:{self.current_account}:placement-group/{name}",
        "State": "available",
        "Strategy": self._get_param("Strategy", "cluster"),
        "Tags": [{"Key": k, "Value": v} for k, v in tags.items()],
    }
    return ActionResult({"PlacementGroup": mine[name]})


def describe_placement_groups(self):
    names = self._get_param("GroupNames", []) or self._get_param("GroupName", [])
    ids = self._get_param("GroupIds", []) or self._get_param("GroupId", [])
    found = list(of_caller(self).values())
    if names:
        found = [g for g in found if g["GroupName"] in names]
        if not found:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{names[0]}' is unknown.")
    if ids:
        found = [g for g in found if g["GroupId"] in ids]
    for key, values in self._filters_from_querystring().items():
        if key == "group-name":
            found = [g for g in found if g["GroupName"] in values]
        elif key.startswith("tag:"):
            found = [g for g in found if any(t["Key"] == key[4:] and t["Value"] in values for t in g["Tags"])]
        elif key == "tag-key":
            found = [g for g in found if any(t["Key"] in values for t in g["Tags"])]
        else:
            raise EC2ClientError("InvalidParameterValue", f"The filter '{key}' is invalid")
    return ActionResult({"PlacementGroups": found})


def delete_placement_group(self):
    mine = of_caller(self)
    name = self._get_param("GroupName")
    if name not in mine:
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    self.error_on_dryrun()
    del mine[name]
    return ActionResult({})


if os.environ.get("PERCORE_MOTO_PLACEMENT_GROUPS") != "no":
    ec2_responses.EC2Response.create_placement_group = create_placement_group
    ec2_responses.EC2Response.describe_placement_groups = describe_placement_groups
    ec2_responses.EC2Response.delete_placement_group = delete_placement_group


# ------------------------------------------------------- what may lose a tag

plain_delete_tags = ec2_responses.EC2Response.delete_tags


def delete_tags(self):
    """A minimal policy allows it for what has the tag percore at that moment."""
    for resource in self._get_param("Resources", []):
        if self.ec2_backend.tags.get(resource, {}).get("percore") != "1":
            raise EC2ClientError("UnauthorizedOperation", f"You are not authorized to delete tags of {resource}, which has not the tag percore.")
    return plain_delete_tags(self)


ec2_responses.EC2Response.delete_tags = delete_tags


# ------------------------------------------------------------ what was called

actions = []
SERVICE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")


def action_of(environ, body):
    service = SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if not service:
        return None
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return service.group(1) + ":" + target.rsplit(".", 1)[-1]
    action = urllib.parse.parse_qs(body.decode("utf-8", "replace")).get("Action")
    return service.group(1) + ":" + action[0] if action else None


# ----------------------------------------------------------- what has a tag


def tagged(key, value):
    """How many resources have the tag, by kind."""
    kinds = []
    for regions in list(ec2_backends.values()):
        for backend in list(regions.values()):
            found = backend.describe_tags({"key": [key], "value": [value]})
            kinds += [t["resource_type"] for t in found if (t["key"], t["value"]) == (key, value)]
    for mine in list(groups.values()):
        for group in list(mine.values()):
            kinds += ["placement-group" for t in group["Tags"] if (t["Key"], t["Value"]) == (key, value)]
    return {kind: kinds.count(kind) for kind in kinds}


class Recorder:
    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start_response):
        if environ.get("PATH_INFO") == "/percore/actions":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(actions).encode()]
        if environ.get("PATH_INFO") == "/percore/tagged":
            query = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", "")))
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(tagged(query["key"], query["value"])).encode()]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length:
            body = environ["wsgi.input"].read(length)
            environ["wsgi.input"] = io.BytesIO(body)
            action = action_of(environ, body)
            if action and action not in actions:
                actions.append(action)
        return self.app(environ, start_response)


def create_app(service):
    """A call that moto does not know is answered as AWS answers one that it does
    not know itself."""
    backend = create_backend_app(service)

    @backend.errorhandler(NotImplementedError)
    def unknown(error):
        text = "<Response><Errors><Error><Code>InvalidAction</Code><Message>The action is not valid for this web service.</Message></Error></Errors></Response>"
        return text, 400, {"Content-Type": "text/xml"}

    return backend


app = DomainDispatcherApplication(create_app)
app.debug = False
server = make_server("127.0.0.1", 0, Recorder(app), threaded=True, request_handler=MotoRequestHandler)
with open(sys.argv[1] + ".new", "w") as f:
    f.write(str(server.port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
