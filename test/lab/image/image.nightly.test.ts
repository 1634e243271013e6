import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { imageArchive } from "../../../package/image/archive.ts";
import { fetchDebs } from "../../../package/image/debian.ts";
import { BASE_PACKAGES, baseLayer, buildImage, debianLayer } from "../../../package/image/image.ts";
import { tarOf } from "../../../package/image/tar.ts";
import { packagesOfRun } from "../systemd/packages.ts";
import { ContainerHost, missingParts, type UnpackedImage, unpackImage } from "./containers.ts";

/** The image of `npm run package`, started as the compose file says, by a user without rights, on a root that is read-only. */

const ROOT = path.resolve(import.meta.dirname, "../../..");
const COMPOSE = path.join(ROOT, "config/container");
const PRESS_PORT = 1502;
const BROKER_ID = 1883;
const missing = missingParts();

if (missing !== undefined && process.env["COLLECTOR_REQUIRE_PARTS"] === "1")
  it("has what it needs", () => {
    throw new Error(`the image cannot be tested: ${missing}`);
  });
else if (missing !== undefined) console.log(`image not tested: ${missing}`);

describe.skipIf(missing !== undefined)("the image", { timeout: 240_000 }, () => {
  let work: string;
  let debs: string;
  let collectorImage: UnpackedImage;
  let host: ContainerHost | undefined;
  const services = parse(readFileSync(path.join(COMPOSE, "compose.yaml"), "utf8")).services;

  beforeAll(async () => {
    work = mkdtempSync(path.join(os.tmpdir(), "collector-image-"));
    debs = path.join(work, "debs");
    fetchDebs([...BASE_PACKAGES, "mosquitto"], "amd64", debs);
    const packages = await packagesOfRun("amd64");
    const deb = path.join(packages, readdirSync(packages).find((name) => /^collector_.*_amd64\.deb$/.test(name)) ?? "");
    const out = path.join(work, "collector.oci.tar");
    buildImage({ deb, debs, out, version: "1.2.3+4", architecture: "amd64", sourceDate: 1_790_000_000, small: false });
    collectorImage = unpackImage(out, path.join(work, "collector-image"));
    host = await ContainerHost.start(work);
  }, 240_000);
  afterAll(() => {
    host?.end();
    rmSync(work, { recursive: true, force: true });
  });

  /** A broker's image, made of Debian's packages in the same way. */
  function brokerImage(): UnpackedImage {
    const packages = readdirSync(debs)
      .map((file) => file.split("_")[0] ?? "")
      .filter((name) => name.startsWith("lib") || name === "mosquitto" || BASE_PACKAGES.includes(name));
    const archive = imageArchive({
      architecture: "amd64",
      names: ["localhost/broker:latest"],
      layers: [debianLayer(packages, debs, [{ name: "mosquitto", id: BROKER_ID }])],
      config: {
        ...collectorImage.config,
        Entrypoint: [],
        Cmd: [],
        WorkingDir: "/",
        StopSignal: "SIGTERM",
        ExposedPorts: {},
        Volumes: {},
        Labels: {},
      },
      small: false,
    });
    const file = path.join(work, "broker.oci.tar");
    writeFileSync(file, archive);
    return unpackImage(file, path.join(work, "broker-image"));
  }

  it("has the same layer of Debian each time, with what a scanner reads and without a package manager", () => {
    const layer = baseLayer(debs);
    const digest = createHash("sha256").update(tarOf(layer.entries, layer.time)).digest("hex");
    expect(collectorImage.layers[0]).toBe(`sha256:${digest}`);
    const names = layer.entries.map(({ name }) => name);
    for (const name of BASE_PACKAGES) expect(names).toContain(`var/lib/dpkg/status.d/${name}`);
    expect(names.filter((name) => /^(usr\/)?s?bin\/(?!dash$|sh$)/.test(name))).toEqual([]);
    const authorities = layer.entries.find(({ name }) => name === "etc/ssl/certs/ca-certificates.crt");
    expect(authorities?.type === "file" && authorities.content.length).toBeGreaterThan(100_000);
  });

  it("reads the demo's machine to a broker, without root, on a read-only root, and ends in order", async () => {
    if (!host) throw new Error("there is no host");
    await host.program(/press/, path.join(ROOT, "bin/collector-node"), path.join(import.meta.dirname, "press.ts"), String(PRESS_PORT));
    await host.container("broker", services.broker, brokerImage(), COMPOSE, /mosquitto version .* running/);
    const collector = await host.container("collector", services.collector, collectorImage, COMPOSE, /collector ready/);

    const status = readFileSync(`/proc/${collector.pid()}/status`, "utf8");
    expect(status).toMatch(/^Uid:\t65534\t/m);
    expect(status).toMatch(/^CapEff:\t0+\n(?:.*\n)*NoNewPrivs:\t1$/m);
    expect(await collector.exec("/bin/sh", "-c", "echo > /usr/written")).toMatchObject({
      out: expect.stringContaining("Read-only file system"),
    });
    const [, ...check] = services.collector.healthcheck.test;
    expect(await collector.exec(...check)).toMatchObject({ code: 0, out: expect.stringMatching(/^healthy/) });

    const verbs = [
      `source add press-1 modbus_tcp host=127.0.0.1 port=${PRESS_PORT} --interval 1s`,
      "variables add press-1 temperature holding:0:float32 --unit °C",
      "sink add broker mqtt host=127.0.0.1 topic=plant/{source}",
    ];
    for (const verb of verbs) expect(await collector.exec("collector", ...verb.split(" "))).toMatchObject({ code: 0 });
    const messages = (await host.output("mosquitto_sub", "-h", "127.0.0.1", "-t", "plant/press-1", "-C", "2", "-W", "25"))
      .trim()
      .split("\n");
    expect(messages).toHaveLength(2);
    for (const message of messages) expect(message).toMatch(/"values":\{"temperature":1[89]\d/);

    expect(await collector.stop()).toBe(0);
    expect(collector.log.at(-1)).toMatch(/INFO {2}stopped/);
    // One volume holds all that outlives the container.
    expect(readdirSync(path.join(work, "volumes"))).toEqual(["collector"]);
  });
});
