-- Health of a SimpleRLJob for Argo CD: by the conditions, as kstatus reads them. Argo CD gives the object as obj.
local function condition(kind)
  for _, found in ipairs(obj.status.conditions or {}) do
    if found.type == kind then
      return found
    end
  end
  return {}
end

if obj.status == nil or obj.status.conditions == nil then
  return {status = "Progressing", message = "The operator has not seen the job yet"}
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The operator has not seen the newest spec yet"}
end

local ready = condition("Ready")
local message = ready.reason or ""
if ready.message ~= nil and ready.message ~= "" then
  message = message .. ": " .. ready.message
end
-- a suspended job is no reason to hold a sync wave, and no healthy one either
if obj.status.phase == "Suspended" then
  return {status = "Suspended", message = message}
end
if condition("Stalled").status == "True" then
  return {status = "Degraded", message = message}
end
if ready.status == "True" then
  return {status = "Healthy", message = message}
end
return {status = "Progressing", message = message}
