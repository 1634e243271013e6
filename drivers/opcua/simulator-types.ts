/** The namespace of the plant's own types; its index is 2, before the plant's. */
export const TYPES_NAMESPACE = "urn:example:types";

/** Numeric ids in it. */
export const MODE_TYPE = 3001;
export const CYCLE_TYPE = 3002;

const field = (name: string, type: string, more = ""): string => `<Field Name="${name}" DataType="${type}"${more}/>`;

/** An enumeration and two structures, as machine vendors deliver them (OPC 10000-6, annex F). */
export const TYPES_NODESET = `<?xml version="1.0" encoding="utf-8"?>
<UANodeSet xmlns="http://opcfoundation.org/UA/2011/03/UANodeSet.xsd">
  <NamespaceUris><Uri>${TYPES_NAMESPACE}</Uri></NamespaceUris>
  <Models>
    <Model ModelUri="${TYPES_NAMESPACE}" Version="1.0.0" PublicationDate="2024-01-01T00:00:00Z">
      <RequiredModel ModelUri="http://opcfoundation.org/UA/"/>
    </Model>
  </Models>
  <UADataType NodeId="ns=1;i=${MODE_TYPE}" BrowseName="1:Mode">
    <DisplayName>Mode</DisplayName>
    <References>
      <Reference ReferenceType="i=45" IsForward="false">i=29</Reference>
      <Reference ReferenceType="i=46">ns=1;i=3101</Reference>
    </References>
    <Definition Name="1:Mode"><Field Name="Off" Value="0"/><Field Name="Manual" Value="1"/><Field Name="Automatic" Value="2"/></Definition>
  </UADataType>
  <UAVariable NodeId="ns=1;i=3101" BrowseName="EnumStrings" DataType="LocalizedText" ValueRank="1" ArrayDimensions="3" ParentNodeId="ns=1;i=${MODE_TYPE}">
    <DisplayName>EnumStrings</DisplayName>
    <References>
      <Reference ReferenceType="i=40">i=68</Reference>
      <Reference ReferenceType="i=46" IsForward="false">ns=1;i=${MODE_TYPE}</Reference>
    </References>
    <Value>
      <ListOfLocalizedText xmlns="http://opcfoundation.org/UA/2008/02/Types.xsd">
        <LocalizedText><Text>Off</Text></LocalizedText><LocalizedText><Text>Manual</Text></LocalizedText><LocalizedText><Text>Automatic</Text></LocalizedText>
      </ListOfLocalizedText>
    </Value>
  </UAVariable>
  <UADataType NodeId="ns=1;i=${CYCLE_TYPE}" BrowseName="1:Cycle">
    <DisplayName>Cycle</DisplayName>
    <References><Reference ReferenceType="i=45" IsForward="false">i=22</Reference></References>
    <Definition Name="1:Cycle">
      ${field("Number", "i=7")}
      ${field("Seconds", "i=11")}
      ${field("Counter", "i=8")}
      ${field("Name", "i=12")}
      ${field("Pressures", "i=10", ' ValueRank="1"')}
      ${field("Window", "i=884")}
      ${field("Mode", `ns=1;i=${MODE_TYPE}`)}
    </Definition>
  </UADataType>
  <UAObject NodeId="ns=1;i=3202" BrowseName="Default Binary" SymbolicName="DefaultBinary">
    <DisplayName>Default Binary</DisplayName>
    <References>
      <Reference ReferenceType="i=38" IsForward="false">ns=1;i=${CYCLE_TYPE}</Reference>
      <Reference ReferenceType="i=40">i=76</Reference>
    </References>
  </UAObject>
</UANodeSet>
`;
