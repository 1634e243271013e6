import net from "node:net";

/** Addresses and networks in CIDR form, IPv4 and IPv6. */
export class Networks {
  readonly #list = new net.BlockList();

  /** `texts`: each an address or a network, as policy.yaml takes them. */
  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const [address = "", bits] = text.split("/");
      const family = familyOf(address);
      this.#list.addSubnet(address, Number(bits ?? (family === "ipv6" ? 128 : 32)), family);
    }
  }

  contains(address: string): boolean {
    return this.#list.check(address, familyOf(address));
  }
}

/** Most are IPv4, and the first question for IPv6 makes Node compile its pattern, which takes 10 ms. */
const familyOf = (address: string): "ipv4" | "ipv6" => (!net.isIPv4(address) && net.isIPv6(address) ? "ipv6" : "ipv4");
