import { BUILT_IN_NAMES } from "./built-in.ts";
import type { Definition, Field, FieldType } from "./structures.ts";

/**
 * Structures that every server may use, so that none has to be asked what they are (OPC 10000-5, 12 and OPC 10000-6, A.2 and A.3): the numbers
 * of data type and binary encoding in namespace 0, the name, and the fields with their types. Enumerations are Int32 on the wire.
 */
const TABLE = `
96 128 RolePermissionType RoleId:NodeId Permissions:UInt32
99 122 StructureDefinition DefaultEncodingId:NodeId BaseDataType:NodeId StructureType:Int32 Fields:StructureField[]
100 123 EnumDefinition Fields:EnumField[]
101 14844 StructureField Name:String Description:LocalizedText DataType:NodeId ValueRank:Int32 ArrayDimensions:UInt32[]
  MaxStringLength:UInt32 IsOptional:Boolean
102 14845 EnumField Value:Int64 DisplayName:LocalizedText Description:LocalizedText Name:String
296 298 Argument Name:String DataType:NodeId ValueRank:Int32 ArrayDimensions:UInt32[] Description:LocalizedText
299 301 StatusResult StatusCode:StatusCode DiagnosticInfo:DiagnosticInfo
304 306 UserTokenPolicy PolicyId:String TokenType:Int32 IssuedTokenType:String IssuerEndpointUrl:String SecurityPolicyUri:String
308 310 ApplicationDescription ApplicationUri:String ProductUri:String ApplicationName:LocalizedText ApplicationType:Int32
  GatewayServerUri:String DiscoveryProfileUri:String DiscoveryUrls:String[]
312 314 EndpointDescription EndpointUrl:String Server:ApplicationDescription ServerCertificate:ByteString SecurityMode:Int32
  SecurityPolicyUri:String UserIdentityTokens:UserTokenPolicy[] TransportProfileUri:String SecurityLevel:Byte
338 340 BuildInfo ProductUri:String ManufacturerName:String ProductName:String SoftwareVersion:String BuildNumber:String
  BuildDate:DateTime
344 346 SignedSoftwareCertificate CertificateData:ByteString Signature:ByteString
853 855 RedundantServerDataType ServerId:String ServiceLevel:Byte ServerState:Int32
856 858 SamplingIntervalDiagnosticsDataType SamplingInterval:Double MonitoredItemCount:UInt32 MaxMonitoredItemCount:UInt32
  DisabledMonitoredItemCount:UInt32
859 861 ServerDiagnosticsSummaryDataType ServerViewCount:UInt32 CurrentSessionCount:UInt32 CumulatedSessionCount:UInt32
  SecurityRejectedSessionCount:UInt32 RejectedSessionCount:UInt32 SessionTimeoutCount:UInt32 SessionAbortCount:UInt32
  CurrentSubscriptionCount:UInt32 CumulatedSubscriptionCount:UInt32 PublishingIntervalCount:UInt32
  SecurityRejectedRequestsCount:UInt32 RejectedRequestsCount:UInt32
862 864 ServerStatusDataType StartTime:DateTime CurrentTime:DateTime State:Int32 BuildInfo:BuildInfo SecondsTillShutdown:UInt32
  ShutdownReason:LocalizedText
865 867 SessionDiagnosticsDataType SessionId:NodeId SessionName:String ClientDescription:ApplicationDescription ServerUri:String
  EndpointUrl:String LocaleIds:String[] ActualSessionTimeout:Double MaxResponseMessageSize:UInt32 ClientConnectionTime:DateTime
  ClientLastContactTime:DateTime CurrentSubscriptionsCount:UInt32 CurrentMonitoredItemsCount:UInt32
  CurrentPublishRequestsInQueue:UInt32 TotalRequestCount:ServiceCounterDataType UnauthorizedRequestCount:UInt32
  ReadCount:ServiceCounterDataType HistoryReadCount:ServiceCounterDataType WriteCount:ServiceCounterDataType
  HistoryUpdateCount:ServiceCounterDataType CallCount:ServiceCounterDataType CreateMonitoredItemsCount:ServiceCounterDataType
  ModifyMonitoredItemsCount:ServiceCounterDataType SetMonitoringModeCount:ServiceCounterDataType
  SetTriggeringCount:ServiceCounterDataType DeleteMonitoredItemsCount:ServiceCounterDataType
  CreateSubscriptionCount:ServiceCounterDataType ModifySubscriptionCount:ServiceCounterDataType
  SetPublishingModeCount:ServiceCounterDataType PublishCount:ServiceCounterDataType RepublishCount:ServiceCounterDataType
  TransferSubscriptionsCount:ServiceCounterDataType DeleteSubscriptionsCount:ServiceCounterDataType
  AddNodesCount:ServiceCounterDataType AddReferencesCount:ServiceCounterDataType DeleteNodesCount:ServiceCounterDataType
  DeleteReferencesCount:ServiceCounterDataType BrowseCount:ServiceCounterDataType BrowseNextCount:ServiceCounterDataType
  TranslateBrowsePathsToNodeIdsCount:ServiceCounterDataType QueryFirstCount:ServiceCounterDataType
  QueryNextCount:ServiceCounterDataType RegisterNodesCount:ServiceCounterDataType UnregisterNodesCount:ServiceCounterDataType
868 870 SessionSecurityDiagnosticsDataType SessionId:NodeId ClientUserIdOfSession:String ClientUserIdHistory:String[]
  AuthenticationMechanism:String Encoding:String TransportProtocol:String SecurityMode:Int32 SecurityPolicyUri:String
  ClientCertificate:ByteString
871 873 ServiceCounterDataType TotalCount:UInt32 ErrorCount:UInt32
874 876 SubscriptionDiagnosticsDataType SessionId:NodeId SubscriptionId:UInt32 Priority:Byte PublishingInterval:Double
  MaxKeepAliveCount:UInt32 MaxLifetimeCount:UInt32 MaxNotificationsPerPublish:UInt32 PublishingEnabled:Boolean ModifyCount:UInt32
  EnableCount:UInt32 DisableCount:UInt32 RepublishRequestCount:UInt32 RepublishMessageRequestCount:UInt32
  RepublishMessageCount:UInt32 TransferRequestCount:UInt32 TransferredToAltClientCount:UInt32 TransferredToSameClientCount:UInt32
  PublishRequestCount:UInt32 DataChangeNotificationsCount:UInt32 EventNotificationsCount:UInt32 NotificationsCount:UInt32
  LatePublishRequestCount:UInt32 CurrentKeepAliveCount:UInt32 CurrentLifetimeCount:UInt32 UnacknowledgedMessageCount:UInt32
  DiscardedMessageCount:UInt32 MonitoredItemCount:UInt32 DisabledMonitoredItemCount:UInt32 MonitoringQueueOverflowCount:UInt32
  NextSequenceNumber:UInt32 EventQueueOverflowCount:UInt32
877 879 ModelChangeStructureDataType Affected:NodeId AffectedType:NodeId Verb:Byte
884 886 Range Low:Double High:Double
887 889 EUInformation NamespaceUri:String UnitId:Int32 DisplayName:LocalizedText Description:LocalizedText
891 893 Annotation Message:String UserName:String AnnotationTime:DateTime
894 896 ProgramDiagnosticDataType CreateSessionId:NodeId CreateClientName:String InvocationCreationTime:DateTime
  LastTransitionTime:DateTime LastMethodCall:String LastMethodSessionId:NodeId LastMethodInputArguments:Argument[]
  LastMethodOutputArguments:Argument[] LastMethodCallTime:DateTime LastMethodReturnStatus:StatusResult
897 899 SemanticChangeStructureDataType Affected:NodeId AffectedType:NodeId
948 950 AggregateConfiguration UseServerCapabilitiesDefaults:Boolean TreatUncertainAsBad:Boolean PercentDataBad:Byte
  PercentDataGood:Byte UseSlopedExtrapolation:Boolean
7594 8251 EnumValueType Value:Int64 DisplayName:LocalizedText Description:LocalizedText
8912 8917 TimeZoneDataType Offset:Int16 DaylightSavingInOffset:Boolean
11216 11226 ModificationInfo ModificationTime:DateTime UpdateType:Int32 UserName:String
11943 11957 EndpointUrlListDataType EndpointUrlList:String[]
11944 11958 NetworkGroupDataType ServerUri:String NetworkPaths:EndpointUrlListDataType[]
12079 12089 AxisInformation EngineeringUnits:EUInformation EURange:Range Title:LocalizedText AxisScaleType:Int32
  AxisSteps:Double[]
12080 12090 XVType X:Double Value:Float
12171 12181 ComplexNumberType Real:Float Imaginary:Float
12172 12182 DoubleComplexNumberType Real:Double Imaginary:Double
12755 12765 OptionSet Value:ByteString ValidBits:ByteString
14533 14846 KeyValuePair Key:QualifiedName Value:Variant
14593 14847 ConfigurationVersionDataType MajorVersion:UInt32 MinorVersion:UInt32
15634 15736 IdentityMappingRuleType CriteriaType:Int32 Criteria:String
18806 18815 RationalNumber Numerator:Int32 Denominator:UInt32
18808 18817 ThreeDVector X:Double Y:Double Z:Double
18810 18819 ThreeDCartesianCoordinates X:Double Y:Double Z:Double
18812 18821 ThreeDOrientation A:Double B:Double C:Double
18814 18823 ThreeDFrame CartesianCoordinates:ThreeDCartesianCoordinates Orientation:ThreeDOrientation
19748 19756 NameValuePair Name:String Value:Variant
23468 23499 AliasNameDataType AliasName:QualifiedName ReferencedNodes:ExpandedNodeId[]
23498 23507 CurrencyUnitType NumericCode:Int16 Exponent:SByte AlphabeticCode:String Currency:LocalizedText
24033 24034 ProgramDiagnostic2DataType CreateSessionId:NodeId CreateClientName:String InvocationCreationTime:DateTime
  LastTransitionTime:DateTime LastMethodCall:String LastMethodSessionId:NodeId LastMethodInputArguments:Argument[]
  LastMethodOutputArguments:Argument[] LastMethodInputValues:Variant[] LastMethodOutputValues:Variant[]
  LastMethodCallTime:DateTime LastMethodReturnStatus:StatusCode
`;

/** Built-in types by their names (OPC 10000-6, 5.1.2). */
const BUILT_IN = new Map(BUILT_IN_NAMES.map((name, number) => [name, number]));

interface Entry {
  readonly dataType: string;
  readonly encoding: string;
  readonly name: string;
  readonly fields: readonly string[];
  readonly definition: Definition;
}

const ENTRIES: readonly Entry[] = TABLE.trim()
  .split(/\n(?=\d)/)
  .map((row) => {
    const [dataType = "", encoding = "", name = "", ...fields] = row.split(/\s+/);
    return { dataType: `i=${dataType}`, encoding: `i=${encoding}`, name, fields, definition: { kind: "structure", fields: [] } };
  });

const BY_NAME = new Map(ENTRIES.map(({ name, definition }) => [name, definition]));

for (const { definition, fields } of ENTRIES) definition.fields.push(...fields.map(fieldOf));

function fieldOf(text: string): Field {
  const [name = "", type = ""] = text.split(":");
  const isArray = type.endsWith("[]");
  return { name, type: typeOf(isArray ? type.slice(0, -2) : type), valueRank: isArray ? 1 : -1, isOptional: false };
}

function typeOf(name: string): FieldType {
  const structure = BY_NAME.get(name);
  return structure ? { structure } : { builtIn: BUILT_IN.get(name) ?? 0 };
}

/** By the text of a binary encoding's node id, such as `i=886`. */
export const STANDARD_ENCODINGS: ReadonlyMap<string, Definition> = new Map(
  ENTRIES.map(({ encoding, definition }) => [encoding, definition]),
);

/** By the text of a data type's node id, such as `i=884`. */
export const STANDARD_TYPES: ReadonlyMap<string, Definition> = new Map(ENTRIES.map(({ dataType, definition }) => [dataType, definition]));

/** A structure of namespace 0 by the name of its data type; undefined: it is not among them. */
export function standardByName(name: string): FieldType | undefined {
  const structure = BY_NAME.get(name);
  return structure && { structure };
}
