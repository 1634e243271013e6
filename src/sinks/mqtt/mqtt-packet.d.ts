/** Of mqtt-packet 9, which has types for its entry alone. */
declare module "mqtt-packet/constants.js" {
  const constants: {
    /** Words by code; what is not in it is a violation of the protocol. */
    readonly MQTT5_PUBACK_PUBREC_CODES: Record<number, string>;
    readonly MQTT5_DISCONNECT_CODES: Record<number, string>;
  };
  export default constants;
}
